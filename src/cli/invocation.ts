/** How this program was called, for commands that it prints to be copied: what is printed must work where it is read. */
import { basename, relative } from 'node:path';

export interface Invocation {
  /** What npm says of the script that it runs: `npm_lifecycle_event` and `npm_command`. */
  readonly script?: string | undefined;
  readonly command?: string | undefined;
  /** Path of the program, and the folder that it was called in. */
  readonly program: string;
  readonly folder: string;
}

/** What comes before the sub-command: `leasehold`, `npx leasehold`, `npm run -s leasehold --` or `node path/to/main.js`. */
export function programName({ script, command, program, folder }: Invocation): string {
  if (script === 'leasehold' && command !== 'exec') return 'npm run -s leasehold --';
  if (command === 'exec') return 'npx leasehold';
  if (basename(program) === 'leasehold') return 'leasehold';
  const path = relative(folder, program);
  return `node ${shellWord(path.startsWith('..') ? program : path)}`;
}

export function thisProgram(): string {
  const { npm_lifecycle_event: script, npm_command: command } = process.env;
  return programName({ script, command, program: process.argv[1] ?? 'leasehold', folder: process.cwd() });
}

/** This call with all its words, to be copied and gone on from: the group that it is about is named in its flags. */
export function thisCall(): string {
  return [thisProgram(), ...process.argv.slice(2).map(shellWord)].join(' ');
}

/** As a shell reads it back. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
