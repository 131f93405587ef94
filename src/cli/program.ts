/**
 * The tree of sub-commands. Each command's module has only its flags and help; what it does is loaded when it is called, so that the
 * program starts quickly. Completion and docs/CLI.md are made from this tree.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { adminCommands } from './admin/command.ts';
import { completionCommand } from './completion/command.ts';
import { EXIT_USAGE } from './conventions.ts';
import { devCommand } from './dev/command.ts';
import { groupCommand } from './group/command.ts';
import { historyCommand } from './history/command.ts';
import { lockCommands } from './locks/command.ts';
import { logCommand } from './log/command.ts';
import { whyNotOn } from './node-version.ts';
import { runCommand } from './run/command.ts';
import { serverCommand } from './server/command.ts';
import { sidecarCommand } from './sidecar/command.ts';

export function createProgram(): Command {
  const program = new Command('leasehold')
    .description('Distributed locks with fencing tokens, first-come-first-served queues and leases.')
    .version(packageVersion(), '-V, --version', 'print the version of the package')
    .showHelpAfterError('(run with --help for usage)')
    .hook('preAction', (_program, action) => requireNodeFor(action));
  const commands = [
    runCommand(),
    ...lockCommands(),
    ...adminCommands(),
    historyCommand(),
    logCommand(),
    devCommand(),
    groupCommand(),
    serverCommand(),
    sidecarCommand(),
    completionCommand(() => program),
  ];
  for (const command of commands) program.addCommand(command);
  passOnSettings(program);
  return program;
}

/** A command that was made apart from the program does not have its settings; the word about --help is one of them. */
function passOnSettings(command: Command): void {
  for (const sub of command.commands) passOnSettings(sub.copyInheritedSettings(command));
}

/** Of the package that this file belongs to: as far below its folder in src as in dist. */
function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const { version } = manifest as { readonly version: string };
  return version;
}

/** Ends the process when `command`, or the group it belongs to, cannot run on this Node.js. */
function requireNodeFor(command: Command): void {
  let top = command;
  while (top.parent?.parent != null) top = top.parent;
  const why = whyNotOn(process.version, top.name());
  if (why === null) return;
  console.error(why);
  process.exit(EXIT_USAGE);
}
