/** How far the log may be trimmed while others still read it (rule L4). */

/** What is kept for the sake of those who are behind. Whoever is further behind starts again from the snapshot, or counts a gap. */
const KEPT_FOR_READERS_BYTES_MAX = 256 * 1024 * 1024;
/** Of the quota, where there is one: the group itself comes first. */
const KEPT_FOR_READERS_SHARE_MAX = 1 / 8;

/** Somebody who reads the log: a standby, or the audit exporter. */
export interface LogReaderPlace {
  /** The last entry that it has read. */
  readonly index: number;
  /** Bytes of the entries above it. */
  readonly behindBytes: number;
}

/** The last entry that may go for the sake of these readers. */
export function trimBound(readers: readonly LogReaderPlace[], quotaBytes = Number.POSITIVE_INFINITY): number {
  const keptBytesMax = Math.min(KEPT_FOR_READERS_BYTES_MAX, KEPT_FOR_READERS_SHARE_MAX * quotaBytes);
  const kept = readers.filter(({ behindBytes }) => behindBytes <= keptBytesMax);
  return Math.min(Number.MAX_SAFE_INTEGER, ...kept.map(({ index }) => index));
}
