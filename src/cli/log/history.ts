/**
 * `leasehold history`: read what happened in a running server; judge a history against the promises.
 */
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Command } from 'commander';
import { HistoryChecker } from '../../history/checker.ts';
import { readHistory } from '../../history/read.ts';
import type { Verdict, Violation } from '../../history/verdict.ts';
import { DATA_FOLDER_DEFAULT } from '../conventions.ts';
import { describeEvent } from './lines.ts';
import { conclude, outputOption, parseIndex, print, UsageError } from './outcome.ts';
import { withAdminClient } from './with-admin-client.ts';

interface ReadFlags {
  readonly data: string;
  readonly namespace?: string;
  readonly from?: number;
  readonly follow?: boolean;
}

interface CheckFlags {
  readonly output: 'table' | 'json';
}

export function historyCommand(): Command {
  return new Command('history')
    .description('Read what happened, and check it against what is promised.')
    .addCommand(readCommand())
    .addCommand(checkCommand());
}

function readCommand(): Command {
  return new Command('read')
    .description('Print committed entries with their events, one JSON document a line.')
    .option('-d, --data <folder>', 'data folder of the running leasehold dev', DATA_FOLDER_DEFAULT)
    .option('-n, --namespace <alias>', 'which namespace, when it serves several')
    .option('--from <index>', 'first entry; default: the oldest there is', parseIndex)
    .option('--follow', 'go on with what happens from now on, until interrupted')
    .addHelpText('after', READ_HELP)
    .action((flags: ReadFlags) => conclude(() => read(flags)));
}

function checkCommand(): Command {
  return new Command('check')
    .description('Judge a whole history: exclusion, order of the queue, rising tokens, expiry, and more.')
    .argument(
      '<file>',
      'lines as "history read" and "log dump --events -o json" print them; - = standard input',
    )
    .addOption(outputOption())
    .addHelpText('after', CHECK_HELP)
    .action((file: string, flags: CheckFlags) => conclude(() => check(file, flags)));
}

const READ_HELP = `
Examples:
  leasehold history read -n payouts > payouts.ndjson
  leasehold history read -n payouts --from 1000 --follow
  leasehold history read -n payouts | leasehold history check -

Exit codes: 0 read, 123 no server serves this data folder (or it stopped), 125 no such namespace or wrong usage.
`;

const CHECK_HELP = `
The history must begin with entry 1: who held what before its first line could only be guessed.

Examples:
  leasehold history check payouts.ndjson
  leasehold log dump -n payouts --events -o json | leasehold history check -

Exit codes: 0 every promise was kept, 1 one was broken, 125 the file is no whole history or wrong usage.
`;

async function read({ data, namespace = '', from = 0, follow = false }: ReadFlags): Promise<boolean> {
  await withAdminClient(data, async (client) => {
    for await (const entry of client.readHistory({ namespace, from, follow }))
      await print(JSON.stringify(entry));
  });
  return true;
}

async function check(file: string, { output }: CheckFlags): Promise<boolean> {
  const checker = new HistoryChecker();
  let isFirst = true;
  for await (const entry of readHistory(linesOf(file))) {
    if (isFirst && entry.index !== 1)
      throw new UsageError(`${file} begins with entry ${entry.index}, not with 1`);
    isFirst = false;
    checker.entry(entry);
  }
  if (isFirst) throw new UsageError(`${file} holds no history`);
  const verdict = checker.finish();
  const lines = output === 'json' ? [JSON.stringify(verdict, null, 2)] : verdictLines(verdict);
  for (const line of lines) await print(line);
  return verdict.ok;
}

async function* linesOf(file: string): AsyncGenerator<string> {
  if (file === '-') {
    yield* createInterface({ input: process.stdin });
    return;
  }
  const handle = await open(file);
  // Closes the file when it has been read or when the reader stops.
  yield* handle.readLines();
}

function verdictLines({ ok, violations, counts }: Verdict): string[] {
  const { entries, events, grants, sessions, takeOvers } = counts;
  const seen = `${entries} entries, ${events} events, ${sessions} sessions, ${grants} grants, ${takeOvers} take-overs`;
  const result = ok ? 'every promise was kept' : `${counts.violations} violations`;
  return [...violations.flatMap(violationLines), `${seen}: ${result}`];
}

function violationLines({ property, rules, message, excerpt }: Violation): string[] {
  const events = excerpt.map(({ index, at, event }) => `  ${index}  ${at / 1000} s  ${describeEvent(event)}`);
  return [`${property} (${rules}): ${message}`, ...events, ''];
}
