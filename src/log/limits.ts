/** Bounds of the log's engines. What the namespace's limits bound (commands per entry, locks) is in src/api/limits.ts. */

/** An entry beyond this is a bug of its maker: the leader closes entries at 512 KiB. */
export const STORED_ENTRY_BYTES_MAX = 1024 * 1024;
/** Snapshots are cut into chunks of 128 KiB (rule L5); this is where an engine refuses. */
export const CHUNK_BYTES_MAX = 1024 * 1024;
/** 2 GiB in chunks of 128 KiB. A manifest with so many hashes still fits a request of etcd (1.5 MiB). */
export const SNAPSHOT_CHUNKS_MAX = 16_384;
/** Snapshots that stay (rule L3): the newest, and one to fall back on. */
export const SNAPSHOTS_KEPT = 2;
/** With the one that a reader far behind needs (rule L4). */
export const SNAPSHOTS_KEPT_MAX = SNAPSHOTS_KEPT + 1;

/** One step of reading or deleting: small enough that an append waits a few milliseconds behind it, not seconds. */
export const PAGE_ENTRIES_MAX = 256;
export const PAGE_BYTES_MAX = 4 * 1024 * 1024;
/** Where the log has more, a page has at least so many entries, or the next one would not have fitted into its bytes. */
export const PAGE_ENTRIES_MIN = 64;

/** A call whose outcome is unknown is repeated so often before its caller is told; together about 300 ms of waiting. */
export const CALL_TRIES = 5;
export const RETRY_DELAY_MS_MIN = 20;
export const RETRY_DELAY_MS_MAX = 1_000;
