/** What the log keeps while others still read it (rule L4). */
import type { LogSpace } from '../../log/port.ts';
import { TIGHT_SHARE } from './space.ts';

/** What is kept for the sake of those who are behind. Whoever is further behind starts again from the snapshot, or counts a gap. */
const KEPT_FOR_READERS_BYTES_MAX = 256 * 1024 * 1024;
/** Of the quota, where there is one: the group itself comes first. */
const KEPT_FOR_READERS_SHARE_MAX = 1 / 8;
/** Of the quota: what the next audit exporter would have to replay before it comes to the cursor, and the snapshot below that. */
const BASIS_SHARE_MAX = 1 / 4;

/** Somebody who reads the log: a standby, or the audit exporter. */
export interface LogReaderPlace {
  /** The last entry that it has read. */
  readonly index: number;
  /** Bytes of the entries above it. */
  readonly behindBytes: number;
}

/** The audit exporter's. Its successor makes events by replay, so it needs a state at or below the cursor. */
export interface AuditPlace extends LogReaderPlace {
  /** The newest snapshot at or below the cursor, 0: the empty state; bytes of it and of the entries above it. */
  readonly basis: { readonly index: number; readonly bytes: number };
}

export interface AuditHold {
  /** The newest snapshot at or below this index stays. */
  readonly keepFrom: number;
  /** Entries up to this one may go. */
  readonly trimTo: number;
}

const NO_HOLD: AuditHold = { keepFrom: Number.MAX_SAFE_INTEGER, trimTo: Number.MAX_SAFE_INTEGER };

/** The last entry that may go for the sake of these readers. */
export function trimBound(readers: readonly LogReaderPlace[], quotaBytes = Number.POSITIVE_INFINITY): number {
  const kept = readers.filter(({ behindBytes }) => behindBytes <= keptBytesMax(quotaBytes));
  return Math.min(Number.MAX_SAFE_INTEGER, ...kept.map(({ index }) => index));
}

/**
 * Within the bound a change of the leader must not cost the exporter anything. Where the quota is short only the entries above the cursor stay,
 * which is enough for the exporter that runs, not for its successor.
 */
export function auditHold(place: AuditPlace | null, space: LogSpace | null): AuditHold {
  if (place === null) return NO_HOLD;
  const { index, behindBytes, basis } = place;
  const quotaBytes = space?.quotaBytes ?? Number.POSITIVE_INFINITY;
  if (behindBytes > keptBytesMax(quotaBytes)) return NO_HOLD;
  const isTight = (space?.usedBytes ?? 0) >= TIGHT_SHARE * quotaBytes;
  if (isTight || basis.bytes > BASIS_SHARE_MAX * quotaBytes) return { ...NO_HOLD, trimTo: index };
  return { keepFrom: basis.index, trimTo: basis.index };
}

function keptBytesMax(quotaBytes: number): number {
  return Math.min(KEPT_FOR_READERS_BYTES_MAX, KEPT_FOR_READERS_SHARE_MAX * quotaBytes);
}
