/** docs/CLI.md, from the tree of commands and what they print as help. */
import type { Command } from 'commander';
import {
  EXIT_HELD,
  EXIT_LOST,
  EXIT_OF_CODE,
  EXIT_QUEUE_FULL,
  EXIT_UNAVAILABLE,
  EXIT_USAGE,
  EXIT_WRONG,
} from '../../src/cli/conventions.ts';
import { createProgram } from '../../src/cli/program.ts';
import { block, GENERATED, table } from './markdown.ts';

const HELP_COLUMNS = 110;

export function cliPage(): string {
  const commands = leavesOf(createProgram(), 'leasehold');
  return `# Command line

${GENERATED}

\`leasehold\` is one program with sub-commands. In a checkout it is \`npm run -s leasehold -- ...\`; \`leasehold completion bash\` prints completion for a shell, \`leasehold --version\` the version.

\`npm run\` and \`npx\` do not reliably pass signals on: where a supervisor, cron or systemd stops the command, run \`npm run build\` once and start \`node dist/cli/main.js ...\` directly. The commands about locks and those of administrators run on Node.js 20; \`dev\`, \`group\`, \`server\`, \`sidecar\` and \`log dump\` need 22.13, and say so.

Commands about locks talk to the lock API, by default at http://127.0.0.1:7070 (\`--url\`, \`LEASEHOLD_URL\`). Those for administrators (\`break\`, \`unquarantine\`, \`tail\`, \`inspect\`, \`history read\`) use the admin socket of a running lock server, which applications have no access to: that of \`leasehold dev\` in its data folder, or of any server of a local group (\`--data\`), or the one that the configuration of a lock server names (\`--admin-socket\`, \`LEASEHOLD_ADMIN_SOCKET\`). Any replica of a group may be asked: what only the leader can answer is passed on to it. Durations are written as in manifests: \`30s\`, \`500ms\`, \`1h30m\`. With \`-o json\` the field names are stable: those of [API.md](API.md), or those that the command's help names.

## Commands

${table(
  ['command', 'what it does'],
  commands.map(({ path, command }) => [
    `[\`${path}\`](#${path.replaceAll(' ', '-')})`,
    command.description(),
  ]),
)}

## Exit codes

${table(
  ['code', 'meaning', 'of these refusals'],
  [
    [0, 'done; of `run`: CMD ended with 0'],
    [EXIT_WRONG, 'what was looked at is wrong: a damaged log, a broken promise'],
    [EXIT_HELD, 'somebody else holds the lock, or the wait for it is over'],
    [EXIT_QUEUE_FULL, 'the queue is full'],
    [EXIT_LOST, 'the grant is over: lost while CMD ran (which was ended), or not in force any more'],
    [EXIT_UNAVAILABLE, 'nobody serves there, or not now'],
    [EXIT_USAGE, 'wrong usage: a flag, a name, a namespace'],
  ].map(([code, meaning]) => [String(code), String(meaning), refusalsOf(Number(code))]),
)}

\`run\` passes CMD's own code on, 128 + n when signal n ended it, and 126 or 127 when it cannot be run or is not there. \`history check\` and \`log dump\` end with 1 for what they found.

## Output for programs

With \`-o json\` standard output has JSON alone. A failure is one line there, \`{code, message, ...details}\`, whatever the command and whatever failed: a refusal of the service with the details of [ERRORS.md](ERRORS.md), a wrong flag, a folder that cannot be written to, a server that is not there. The same stands on standard error in words for people, and the exit code is that of the table above. \`code\` is a code of [ERRORS.md](ERRORS.md) (\`INVALID\` for wrong usage, \`UNAVAILABLE\` where nobody serves), or one of two that only commands have: \`REFUSED\`, what was asked does not fit the state (a hand-over that nobody could take; exit code 125), and \`FAILED\`, what was looked at is wrong (exit code 1). A command that has printed answers before it fails (\`tail\`, \`log dump\`) prints the failure as its last line; \`history read\`, whose output is a file for others to read, prints none.

## What \`run\` promises

- CMD is started only after a renewal has said until when the lock is held. No two CMDs of one exclusive lock run at once as long as the wrapper or its watchdog process runs, whatever is stopped or killed.
- CMD and its process group get SIGTERM a fifth of the TTL before the deadline when no renewal is acknowledged, and at once when the lock is being taken away or is lost; SIGKILL half a second before the deadline, or a second after the loss. Were wrapper, watchdog and CMD all stopped past the deadline, CMD dies within a second of resuming; what it does in that second is refused by whoever checks its token.
- A sleep of the machine counts as time that has passed.
- The lock is given back when CMD and whatever it left in its process group have ended. If the wrapper is killed, its watchdog kills CMD at once, and the lock is free when its TTL has passed: not before, since only then CMD is surely dead.
- Limits: a process that leaves CMD's process group (\`setsid\`, a daemon) is not ended. CMD has a session of its own: it can read the terminal, but cannot open \`/dev/tty\` (password prompts of \`ssh\` or \`sudo\`), and gets no SIGWINCH. Ctrl-Z stops the wrapper alone, so the lock is lost. \`break --now\` frees the lock at once, so the next CMD can begin while this one is being ended.

${commands.map(section).join('\n\n')}
`;
}

interface Leaf {
  readonly path: string;
  readonly command: Command;
}

function leavesOf(command: Command, path: string): Leaf[] {
  if (command.commands.length === 0) return [{ path, command }];
  return command.commands.flatMap((sub) => leavesOf(sub, `${path} ${sub.name()}`));
}

function section({ path, command }: Leaf): string {
  return `## ${path}\n\n${block('', helpOf(command))}`;
}

function helpOf(command: Command): string {
  let text = '';
  command.configureHelp({ helpWidth: HELP_COLUMNS });
  command.configureOutput({
    writeOut: (more) => {
      text += more;
    },
  });
  command.outputHelp();
  return text.trim();
}

function refusalsOf(exitCode: number): string {
  const codes = Object.entries(EXIT_OF_CODE).filter(([, exit]) => exit === exitCode);
  return codes.map(([code]) => `\`${code}\``).join(', ');
}
