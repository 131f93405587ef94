/**
 * What the audit exporter writes: a line of JSON for each entry of the log with the events it caused, in order, and one for each stretch of
 * the log that was trimmed before it could be exported. `leasehold history check` reads these lines.
 *
 * An entry may be exported more than once (after a change of the leader, or of the exporter); it is the same line each time, so whoever reads
 * keeps one for each (lineage, index).
 */
import type { HistoryEntry } from '../../api/entry.ts';

export interface AuditGap {
  /** First and last entry that is missing. */
  readonly from: number;
  readonly to: number;
}

export type AuditRecord =
  | { readonly type: 'entry'; readonly group: string; readonly entry: HistoryEntry }
  | { readonly type: 'gap'; readonly group: string; readonly lineage: string; readonly gap: AuditGap };

/** Records in the order of the log, none missing between them but what a gap names. */
export interface AuditBatch {
  readonly group: string;
  readonly lineage: string;
  readonly records: readonly AuditRecord[];
  /** The records as lines, without line ends. */
  readonly lines: readonly string[];
  readonly firstIndex: number;
  readonly lastIndex: number;
}

export function lineOf(record: AuditRecord): string {
  if (record.type === 'gap') {
    const { group, lineage, gap } = record;
    return JSON.stringify({ type: 'gap', group, lineage, ...gap });
  }
  const { lineage, epoch, index, at, wallMs, eventHash, events } = record.entry;
  return JSON.stringify({ group: record.group, lineage, epoch, index, at, wallMs, eventHash, events });
}

export function batchOf(records: readonly AuditRecord[], lines: readonly string[]): AuditBatch {
  const [first] = records;
  const last = records.at(-1);
  if (first === undefined || last === undefined) throw new RangeError('a batch has a record');
  const lineage = first.type === 'gap' ? first.lineage : first.entry.lineage;
  return {
    group: first.group,
    lineage,
    records,
    lines,
    firstIndex: first.type === 'gap' ? first.gap.from : first.entry.index,
    lastIndex: last.type === 'gap' ? last.gap.to : last.entry.index,
  };
}
