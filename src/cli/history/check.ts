/** `leasehold history check`: judges a history against the promises. */
import { open } from 'node:fs/promises';
import { linesOf } from '../../history/lines.ts';
import { mergeHistories } from '../../history/merge.ts';
import { HistoryFormatError, type HistoryLine, readExport } from '../../history/read.ts';
import type { Violation } from '../../history/verdict.ts';
import { systemClock } from '../../platform/system-runtime.ts';
import { UsageError } from '../errors.ts';
import { whyUnreadable } from '../folders.ts';
import type { OutputFormat } from '../options.ts';
import { print, verdict } from '../output/outcome.ts';
import { type Judgement, Judging } from './judging.ts';
import { describeEvent } from './lines.ts';

/** How often whoever waits hears how far it is. */
const PROGRESS_MS = 2_000;

const WHAT_IS_READ =
  'A history is what "leasehold history read -o json" prints, or what an audit sink was given (docs/AUDIT.md)';

export interface CheckFlags {
  readonly output: OutputFormat;
}

export async function check(files: readonly string[], { output }: CheckFlags): Promise<boolean> {
  const judging = new Judging();
  const progress = new Progress();
  for await (const line of mergeHistories(files.map(exportIn))) {
    judging.take(line);
    progress.tell(judging);
  }
  if (judging.entries === 0) throw new UsageError(`${files.join(', ')} holds no history`);
  const judgement = judging.finish();
  const lines = output === 'json' ? [JSON.stringify(judgement, null, 2)] : judgementLines(judgement);
  const isKept = verdict(judgement.ok);
  for (const line of lines) await print(line);
  return isKept;
}

/** On standard error, only while it takes long. */
class Progress {
  readonly #startedMs = systemClock.monotonicMs();
  #toldMs = this.#startedMs;
  #lines = 0;

  tell({ entries, events, index, violations }: Judging): void {
    this.#lines += 1;
    if (this.#lines % 256 !== 0) return;
    const nowMs = systemClock.monotonicMs();
    if (nowMs - this.#toldMs < PROGRESS_MS) return;
    this.#toldMs = nowMs;
    const seconds = Math.round((nowMs - this.#startedMs) / 1_000);
    const rate = Math.round((events * 1_000) / (nowMs - this.#startedMs));
    console.error(
      `${seconds} s: entry ${index}, ${entries} entries, ${events} events (${rate} a second), ${violations} violations`,
    );
  }
}

async function* exportIn(file: string): AsyncGenerator<HistoryLine> {
  const told = (line: number): void => {
    console.error(`${file}: line ${line}, the last one, is not finished and was left out`);
  };
  try {
    yield* readExport(linesOf(bytesOf(file)), told);
  } catch (error) {
    if (!(error instanceof HistoryFormatError)) throw error;
    const { line, message } = error;
    const wayOut = line === 1 ? `. ${WHAT_IS_READ}` : '';
    throw new UsageError(`${file}: ${message}${wayOut}`, { cause: error, details: { field: file, line } });
  }
}

async function* bytesOf(file: string): AsyncGenerator<Uint8Array> {
  if (file === '-') {
    yield* process.stdin;
    return;
  }
  try {
    const handle = await open(file);
    // Closes the file when it has been read or when the reader stops.
    yield* handle.createReadStream();
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): unknown {
  if (!(error instanceof Error && 'code' in error)) return error;
  return new UsageError(`${file} cannot be read: ${whyUnreadable(error)}`, { cause: error });
}

function judgementLines({ ok, violations, counts, ...seenParts }: Judgement): string[] {
  const { entries, events, grants, sessions, takeOvers } = counts;
  const seen = [
    counted(entries, 'entry', 'entries'),
    counted(events, 'event', 'events'),
    counted(sessions, 'session', 'sessions'),
    counted(grants, 'grant', 'grants'),
    counted(takeOvers, 'take-over', 'take-overs'),
  ].join(', ');
  const isWhole = isWholeIn(seenParts);
  const kept = isWhole ? 'every promise was kept' : 'nothing that can be judged was broken';
  const result = ok ? kept : counted(counts.violations, 'violation', 'violations');
  return [...violations.flatMap(violationLines), ...partLines(seenParts), `${seen}: ${result}`];
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

type Parts = Pick<Judgement, 'parts' | 'missingAtEnd'>;

function isWholeIn({ parts, missingAtEnd }: Parts): boolean {
  return missingAtEnd.length === 0 && parts.every(({ notJudged }) => notJudged.length === 0);
}

/** Only where it is not one whole history. */
function partLines({ parts, missingAtEnd }: Parts): string[] {
  if (parts.length === 1 && isWholeIn({ parts, missingAtEnd })) return [];
  const judged = parts.map(({ lineage, from, to, missingBefore, notJudged }) => {
    const before =
      missingBefore === null ? '' : ` (${missingBefore.from} to ${missingBefore.to} are missing)`;
    const not =
      notJudged.length === 0
        ? 'judged whole'
        : `not judged, as it depends on what was before: ${notJudged.join(', ')}`;
    return `entries ${from} to ${to} of lineage ${lineage}${before}: ${not}`;
  });
  const missing = missingAtEnd.map(
    ({ lineage, from, to }) => `entries ${from} to ${to} of lineage ${lineage} are missing: not judged`,
  );
  return [...judged, ...missing];
}

function violationLines({ property, rules, message, excerpt }: Violation): string[] {
  const events = excerpt.map(({ index, at, event }) => `  ${index}  ${at / 1000} s  ${describeEvent(event)}`);
  return [`${property} (${rules}): ${message}`, ...events, ''];
}
