/** `leasehold history check`: judges a history against the promises. */
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { HistoryChecker } from '../../history/checker.ts';
import { readHistory } from '../../history/read.ts';
import type { Verdict, Violation } from '../../history/verdict.ts';
import { UsageError } from '../errors.ts';
import type { OutputFormat } from '../options.ts';
import { print } from '../output/outcome.ts';
import { describeEvent } from './lines.ts';

const FILE_PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EISDIR', 'it is a folder'],
  ['EACCES', 'this user may not'],
]);

export interface CheckFlags {
  readonly output: OutputFormat;
}

export async function check(file: string, { output }: CheckFlags): Promise<boolean> {
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
  try {
    const handle = await open(file);
    // Closes the file when it has been read or when the reader stops.
    yield* handle.readLines();
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error;
  const why = FILE_PROBLEMS.get(String(error.code)) ?? error.message;
  return new UsageError(`${file} cannot be read: ${why}`, { cause: error });
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
