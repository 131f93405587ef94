/**
 * The tree of sub-commands. Each command's module has only its flags and help; what it does is loaded when it is called, so that the
 * program starts quickly. Completion and docs/CLI.md are made from this tree.
 */
import { Command } from 'commander';
import { adminCommands } from './admin/command.ts';
import { completionCommand } from './completion/command.ts';
import { devCommand } from './dev/command.ts';
import { groupCommand } from './group/command.ts';
import { historyCommand } from './history/command.ts';
import { lockCommands } from './locks/command.ts';
import { logCommand } from './log/command.ts';
import { runCommand } from './run/command.ts';
import { serverCommand } from './server/command.ts';
import { sidecarCommand } from './sidecar/command.ts';

export function createProgram(): Command {
  const program = new Command('leasehold')
    .description('Distributed locks with fencing tokens, first-come-first-served queues and leases.')
    .showHelpAfterError('(run with --help for usage)');
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
  return program;
}
