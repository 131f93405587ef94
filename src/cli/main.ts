#!/usr/bin/env node
/**
 * `leasehold`: one program, sub-commands. Each command lives in its own file; here is only the list of them.
 */
import { Command } from 'commander';
import { EXIT_USAGE } from './conventions.ts';
import { devCommand } from './dev/command.ts';
import { logCommand } from './log/dump.ts';
import { historyCommand } from './log/history.ts';
import { inspectCommand } from './log/inspect.ts';

const program = new Command('leasehold')
  .description('Distributed locks with fencing tokens, first-come-first-served queues and leases.')
  .showHelpAfterError('(run with --help for usage)');

for (const command of [devCommand(), inspectCommand(), historyCommand(), logCommand()]) {
  program.addCommand(command);
}
endUsageErrorsWith(EXIT_USAGE, program);
await program.parseAsync();

/** Commander's own code for them is 1, which here means that something is wrong with what was looked at. */
function endUsageErrorsWith(code: number, command: Command): void {
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : code));
  for (const sub of command.commands) endUsageErrorsWith(code, sub);
}
