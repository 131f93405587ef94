#!/usr/bin/env node
/**
 * `leasehold`: one program, sub-commands.
 */
import type { Command } from 'commander';
import { EXIT_USAGE } from './conventions.ts';
import { withHelpWords } from './help-words.ts';
import { failureJson } from './output/outcome.ts';
import { createProgram } from './program.ts';

const program = createProgram();
endUsageErrorsWith(EXIT_USAGE, program);
await program.parseAsync(withHelpWords(process.argv.slice(2)), { from: 'user' });

/**
 * Commander's own code for them is 1, which here means that something is wrong with what was looked at. Where JSON was asked for they are
 * told on standard output too, as every other failure is.
 */
function endUsageErrorsWith(exitCode: number, command: Command): void {
  command.exitOverride((error) => {
    if (error.exitCode === 0) process.exit(0);
    const message = error.message.replace(/^error: /, '');
    if (isJsonAsked(process.argv)) console.log(failureJson({ code: 'INVALID', message, exitCode }));
    process.exit(exitCode);
  });
  for (const sub of command.commands) endUsageErrorsWith(exitCode, sub);
}

/** The arguments are no options yet: one of them is wrong. What is behind `--` is another program's. */
function isJsonAsked(args: readonly string[]): boolean {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  return own.some(
    (arg, at) =>
      /^(-o=?|--output=)json$/.test(arg) || (/^(-o|--output)$/.test(arg) && own[at + 1] === 'json'),
  );
}
