#!/usr/bin/env node
/**
 * `leasehold`: one program, sub-commands.
 */
import type { Command } from 'commander';
import { EXIT_USAGE } from './conventions.ts';
import { createProgram } from './program.ts';

const program = createProgram();
endUsageErrorsWith(EXIT_USAGE, program);
await program.parseAsync();

/** Commander's own code for them is 1, which here means that something is wrong with what was looked at. */
function endUsageErrorsWith(code: number, command: Command): void {
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : code));
  for (const sub of command.commands) endUsageErrorsWith(code, sub);
}
