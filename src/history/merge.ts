/**
 * Several exports of one log as one history. The audit exporter writes an entry at least once, and after a change of the leader another server
 * goes on in a file of its own: so entries come twice, and each file has a part. Here each comes once, in the order of the log.
 *
 * What comes twice must be the same: two accounts of one entry that differ are an error, never resolved by a guess. A hole between files is
 * passed on as it is, for the checker to find.
 */
import type { HistoryEntry } from '../api/entry.ts';
import type { HistoryLine } from './read.ts';

/** Entries remembered for the comparison with what comes twice: more than an exporter sends again. */
const REMEMBERED_MAX = 20_000;

export class ContradictionError extends Error {
  readonly index: number;

  constructor(index: number) {
    super(
      `entry ${index} is there twice, with different contents: these are exports of different logs, or one was changed`,
    );
    this.name = 'ContradictionError';
    this.index = index;
  }
}

/** `wallMs`: of the entry, or of the one after the gap. */
interface Timed {
  readonly line: HistoryLine;
  readonly wallMs: number;
}

interface Head extends Timed {
  readonly source: AsyncIterator<Timed>;
  line: HistoryLine;
  wallMs: number;
}

/** Reads all sources side by side; each must be in the order in which it was written. */
export async function* mergeHistories(
  sources: readonly AsyncIterable<HistoryLine>[],
): AsyncGenerator<HistoryLine> {
  let heads: Head[] = [];
  for (const iterable of sources) {
    const source = timed(iterable);
    const first = await source.next();
    if (first.done !== true) heads.push({ source, ...first.value });
  }
  const seen = new Seen();
  while (heads.length > 0) {
    const next = pick(heads, seen);
    const { line } = next;
    const shown = seen.take(line, heads);
    if (shown !== null) yield shown;
    if (line.type === 'gap' && shown?.type === 'gap' && shown.to < line.to) continue;
    const following = await next.source.next();
    if (following.done === true) heads = heads.filter((head) => head !== next);
    else Object.assign(next, following.value);
  }
}

/** A gap says not when it was: it is held back until the entry after it is read. */
async function* timed(lines: AsyncIterable<HistoryLine>): AsyncGenerator<Timed> {
  let gaps: HistoryLine[] = [];
  let wallMs = 0;
  for await (const line of lines) {
    if (line.type === 'gap') {
      gaps.push(line);
      continue;
    }
    wallMs = line.entry.wallMs;
    for (const gap of gaps) yield { line: gap, wallMs };
    gaps = [];
    yield { line, wallMs };
  }
  for (const gap of gaps) yield { line: gap, wallMs };
}

/**
 * The earliest of the lineage that is being read; of two that begin alike the entry. Which of two lineages came first neither
 * they say nor the order of the files; the wall time does, as the end of one and the beginning of the next lie far apart.
 */
function pick(heads: readonly Head[], seen: Seen): Head {
  const ofLineage = heads.filter(({ line }) => lineageOf(line) === seen.lineage);
  const oldest = heads.reduce((best, head) => (isOlder(head, best) ? head : best));
  const from =
    ofLineage.length > 0
      ? ofLineage
      : heads.filter((head) => lineageOf(head.line) === lineageOf(oldest.line));
  const [first, ...others] = from;
  return others.reduce(
    (best, head) => (isBefore(head.line, best.line, seen.last) ? head : best),
    first as Head,
  );
}

/** A gap may be the end of the lineage before. */
function isOlder(a: Head, b: Head): boolean {
  return a.wallMs < b.wallMs || (a.wallMs === b.wallMs && a.line.type === 'gap' && b.line.type === 'entry');
}

function isBefore(a: HistoryLine, b: HistoryLine, last: number): boolean {
  const [atA, atB] = [startOf(a, last), startOf(b, last)];
  return atA < atB || (atA === atB && a.type === 'entry' && b.type === 'gap');
}

/** What was read already begins where reading goes on. */
function startOf(line: HistoryLine, last: number): number {
  return line.type === 'entry' ? line.entry.index : Math.max(line.from, Math.min(line.to, last + 1));
}

function lineageOf(line: HistoryLine): string {
  return line.type === 'entry' ? line.entry.lineage : line.lineage;
}

/** How far the merged history has come. */
class Seen {
  lineage = '';
  last = 0;
  readonly #prints = new Map<number, string>();

  /** What of the line is new; null: nothing. Throws ContradictionError. */
  take(line: HistoryLine, heads: readonly Head[]): HistoryLine | null {
    if (lineageOf(line) !== this.lineage) {
      this.lineage = lineageOf(line);
      this.last = 0;
      this.#prints.clear();
    }
    return line.type === 'entry' ? this.#takeEntry(line) : this.#takeGap(line, heads);
  }

  #takeEntry(line: HistoryLine & { readonly type: 'entry' }): HistoryLine | null {
    const { index } = line.entry;
    const known = this.#prints.get(index);
    const print = printOf(line.entry);
    if (known !== undefined && known !== print) throw new ContradictionError(index);
    if (index <= this.last) return null;
    this.last = index;
    this.#prints.set(index, print);
    if (this.#prints.size > REMEMBERED_MAX) {
      const [oldest] = this.#prints.keys();
      if (oldest !== undefined) this.#prints.delete(oldest);
    }
    return line;
  }

  /** One exporter's gap may be another one's entries. */
  #takeGap(line: HistoryLine & { readonly type: 'gap' }, heads: readonly Head[]): HistoryLine | null {
    const from = Math.max(line.from, this.last + 1);
    if (from > line.to) return null;
    const entries = heads.flatMap(({ line: other }) =>
      other.type === 'entry' && other.entry.lineage === this.lineage && other.entry.index >= from
        ? other.entry.index
        : [],
    );
    const to = Math.min(line.to, ...entries.map((index) => index - 1));
    this.last = to;
    return { ...line, from, to };
  }
}

/** The chain covers the events, and the rest is small. */
function printOf({ epoch, at, wallMs, eventHash, events }: HistoryEntry): string {
  return `${epoch} ${at} ${wallMs} ${eventHash} ${events.length}`;
}
