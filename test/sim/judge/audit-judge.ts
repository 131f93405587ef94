/**
 * What an auditor has of a group (rule L4): each entry of the log, in order, whoever led when it was exported. Twice is right, and then it is
 * the same line; never is not, and neither is a cursor that is ahead of what the sink has.
 */
import type { AuditBatch } from '../../../src/server/audit/records.ts';
import type { Findings } from './findings.ts';

/** What the exporter may be behind at the end of a run: some seconds of entries. */
const BEHIND_MAX = 60;

interface AuditJudgeOptions {
  readonly alias: string;
  readonly findings: Findings;
  readonly eventHashAt: (index: number) => string | undefined;
}

export class AuditJudge {
  readonly #options: AuditJudgeOptions;
  #lineage: string;
  /** By index, from 1. */
  #lines: string[] = [''];
  /** Batches that the sink took. */
  taken = 0;
  /** The sink always takes what it is given, and says so. */
  isCalm = false;

  constructor(lineage: string, options: AuditJudgeOptions) {
    this.#lineage = lineage;
    this.#options = options;
  }

  beginLineage(lineage: string): void {
    this.#lineage = lineage;
    this.#lines = [''];
  }

  took({ lineage, firstIndex, records, lines }: AuditBatch): void {
    if (lineage !== this.#lineage) return;
    this.taken++;
    if (firstIndex > this.#lines.length)
      this.#add(`entries from ${this.#lines.length} to ${firstIndex - 1} were not exported`);
    for (const [place, record] of records.entries()) {
      if (record.type === 'gap')
        this.#add(`entries from ${record.gap.from} to ${record.gap.to} were trimmed first`);
      else this.#entry(record.entry.index, record.entry.eventHash, lines[place] as string);
    }
  }

  /** Up to here everything is exported, says the log. */
  cursorAt(index: number): void {
    if (index >= this.#lines.length)
      this.#add(`the cursor stands at ${index}, and the sink has entries up to ${this.#lines.length - 1}`);
  }

  finish(lastIndex: number): void {
    if (this.#lines.length - 1 >= lastIndex - BEHIND_MAX) return;
    this.#add(`it ends at entry ${this.#lines.length - 1}, the log at ${lastIndex}`);
  }

  #entry(index: number, eventHash: string, line: string): void {
    const known = this.#lines[index];
    if (known !== undefined && known !== line) this.#add(`entry ${index} was exported twice, and not alike`);
    if (this.#options.eventHashAt(index) !== eventHash) this.#add(`entry ${index} is another one in the log`);
    this.#lines[index] = line;
  }

  #add(problem: string): void {
    this.#options.findings.add('rule L4', `${this.#options.alias}: the audit: ${problem}`);
  }
}
