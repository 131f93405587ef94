/**
 * One verdict over an export: a whole log, the end of one whose beginning was trimmed, or pieces with gaps between them. Each piece is judged
 * for itself; across a gap, and across lineages, only tokens are compared.
 */
import { HistoryChecker } from '../../history/checker.ts';
import type { HistoryLine } from '../../history/read.ts';
import type { Counts, PropertyName, Verdict, Violation } from '../../history/verdict.ts';
import { UsageError } from '../errors.ts';

/** Pieces beyond these are judged, and not listed. */
const PARTS_MAX = 100;

/** Entries that were trimmed before they could be exported. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

export interface JudgedPart {
  readonly lineage: string;
  readonly from: number;
  readonly to: number;
  /** What is missing just before this piece. */
  readonly missingBefore: Stretch | null;
  /** Properties that its beginning leaves open. */
  readonly notJudged: readonly PropertyName[];
}

export interface Judgement extends Verdict {
  readonly parts: readonly JudgedPart[];
  /** What is missing with no piece of its lineage after it. */
  readonly missingAtEnd: readonly MissingAtEnd[];
}

interface MissingAtEnd extends Stretch {
  readonly lineage: string;
}

interface Part {
  readonly lineage: string;
  readonly from: number;
  readonly missingBefore: JudgedPart['missingBefore'];
  readonly checker: HistoryChecker;
}

const VIOLATIONS_MAX = 100;

export class Judging {
  #lineage = '';
  #group: string | undefined;
  #part: Part | null = null;
  #missing: MissingAtEnd | null = null;
  readonly #missingAtEnd: MissingAtEnd[] = [];
  #highestToken = 0;
  readonly #parts: JudgedPart[] = [];
  readonly #violations: Violation[] = [];
  #counts: Counts | null = null;
  entries = 0;
  events = 0;
  /** Of the newest entry. */
  index = 0;

  get violations(): number {
    const now = this.#part?.checker.verdict().counts.violations ?? 0;
    return now + (this.#counts?.violations ?? 0);
  }

  /** Throws UsageError for a lineage of another group than those before: each counts its tokens for itself. */
  take(line: HistoryLine): void {
    const { lineage } = line.type === 'gap' ? line : line.entry;
    if (lineage !== this.#lineage) this.#ofGroup(line.group);
    this.#lineage = lineage;
    if (line.type === 'gap') {
      this.#endPart();
      const { from, to } = line;
      if (this.#missing?.lineage !== lineage) this.#endMissing();
      // One after the other are one.
      this.#missing = { lineage, from: this.#missing?.from ?? from, to };
      return;
    }
    const { entry } = line;
    if (this.#part !== null && this.#part.lineage !== entry.lineage) this.#endPart();
    this.#part ??= this.#begin(entry.lineage, entry.index);
    this.#part.checker.entry(entry);
    this.entries += 1;
    this.events += entry.events.length;
    this.index = entry.index;
  }

  finish(): Judgement {
    this.#endPart();
    this.#endMissing();
    const counts = this.#counts as Counts;
    const [ok, violations] = [counts.violations === 0, this.#violations];
    return { ok, violations, counts, parts: this.#parts, missingAtEnd: this.#missingAtEnd };
  }

  #ofGroup(group: string | undefined): void {
    this.#group ??= group;
    if (group === undefined || group === this.#group) return;
    const groups = `${JSON.stringify(this.#group)} and ${JSON.stringify(group)}`;
    throw new UsageError(`these are entries of two groups, ${groups}: check one group at a time`);
  }

  #begin(lineage: string, from: number): Part {
    // The first entry of a later lineage knows of no state before, only of tokens.
    const checker = new HistoryChecker({ startsInMiddle: from !== 1, aboveToken: this.#highestToken });
    if (this.#missing?.lineage !== lineage) this.#endMissing();
    const missing = this.#missing;
    this.#missing = null;
    const missingBefore = missing === null ? null : { from: missing.from, to: missing.to };
    return { lineage, from, missingBefore, checker };
  }

  #endMissing(): void {
    if (this.#missing !== null && this.#missingAtEnd.length < PARTS_MAX)
      this.#missingAtEnd.push(this.#missing);
    this.#missing = null;
  }

  #endPart(): void {
    const part = this.#part;
    if (part === null) return;
    this.#part = null;
    const { checker, ...shown } = part;
    const { notJudged } = checker;
    const { violations, counts } = checker.finish();
    this.#violations.push(...violations.slice(0, VIOLATIONS_MAX - this.#violations.length));
    this.#counts = this.#counts === null ? counts : sumOf(this.#counts, counts);
    this.#highestToken = checker.highestToken;
    if (this.#parts.length < PARTS_MAX) this.#parts.push({ ...shown, to: this.index, notJudged });
  }
}

function sumOf(a: Counts, b: Counts): Counts {
  const sum: Record<keyof Counts, number> = { ...a };
  for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += b[name];
  return sum;
}
