/**
 * Every bound of the system in one place, with its unit in the name.
 * A namespace's manifest may set lower values where it has a field for it; nothing may exceed these.
 */

/** Bytes of UTF-8 of a lock's name below its alias (the alias and the slash do not count). */
export const NAME_BYTES_MAX = 512;
export const OWNER_BYTES_MAX = 256;
/** The name a client gives itself when it opens a session. */
export const CLIENT_BYTES_MAX = 256;
export const PURPOSE_BYTES_MAX = 1024;
/** An idempotency key (rule C4) and the HTTP API's `request`. */
export const KEY_BYTES_MAX = 64;
export const RESOURCE_BYTES_MAX = 512;
export const REASON_BYTES_MAX = 1024;

export const TTL_MS_MIN = 5_000;
export const TTL_MS_MAX = 60_000;
export const TTL_MS_DEFAULT = 15_000;
export const WAIT_MS_MAX = 24 * 3_600_000;
export const WAIT_MS_DEFAULT = 10 * 60_000;
export const LOCK_DELAY_MS_MAX = 10 * 60_000;
export const HOLD_MS_MIN = 1_000;
export const HOLD_MS_MAX = 30 * 24 * 3_600_000;
export const HOLD_MS_DEFAULT = 24 * 3_600_000;

export const WAITERS_PER_NAME_DEFAULT = 500;
export const WAITERS_PER_NAME_MAX = 10_000;
export const SESSIONS_DEFAULT = 5_000;
export const SESSIONS_MAX = 20_000;
export const HELD_LOCKS_DEFAULT = 200_000;
export const HELD_LOCKS_MAX = 1_000_000;
export const WAITERS_DEFAULT = 50_000;
export const WAITERS_MAX = 1_000_000;
export const OPERATIONS_PER_SECOND_DEFAULT = 5_000;
export const OPERATIONS_PER_SECOND_MAX = 1_000_000;
export const CLIENT_LOCKS_DEFAULT = 1_000;
export const CLIENT_LOCKS_MAX = 100_000;
export const CLIENT_OPERATIONS_PER_SECOND_DEFAULT = 200;

/** Permits of a semaphore, and of one request for it. */
export const PERMITS_MAX = 10_000;
/** Acquires that may share one re-entrant grant (rule C6). */
export const KEYS_PER_GRANT_MAX = 64;
/** Outcomes of acquires that a session may leave unacknowledged (rule C5). */
export const UNSETTLED_OUTCOMES_MAX = 256;
/** Consequences (timers, ends) carried out in one entry (rule C1). */
export const TRANSITIONS_PER_ENTRY_MAX = 2_000;
/** What one log entry may hold; what arrives beyond it waits for the next. */
export const COMMANDS_PER_ENTRY_MAX = 2_000;
export const ENTRY_BYTES_MAX = 512 * 1024;

/** Tokens are exact in every language that reads JSON numbers as doubles (rule C12). */
export const TOKEN_MAX = 2 ** 53 - 1;
/** A take-over raises the counter to `unix seconds * TOKENS_PER_SECOND` (rule C12). */
export const TOKENS_PER_SECOND = 2 ** 20;
/** ...but never by more than this, so that one broken clock cannot use up the range. */
export const TOKEN_RAISE_MAX = 2 ** 45;
/** 2100-01-01T00:00:00Z: clocks past it raise nothing. */
export const UNIX_SECONDS_MAX = 4_102_444_800;

export const BUCKETS = 4_096;
export const HTTP_BODY_BYTES_MAX = 64 * 1024;
export const LIST_LIMIT_DEFAULT = 100;
export const LIST_LIMIT_MAX = 1_000;

/** Version of the encoding of entries, frames and snapshots (rule L6). */
export const FORMAT_VERSION = 1;
/**
 * Highest behaviour level this program can apply (rule C15).
 * 1: exclusive locks. 2: shared and semaphore locks, re-entrant acquires.
 */
export const BEHAVIOUR_LEVEL_MAX = 2;

/** Where a sidecar or `leasehold dev` serves the lock API, and everybody looks for it unless told otherwise. */
export const API_PORT_DEFAULT = 7070;
export const API_URL_DEFAULT = `http://127.0.0.1:${API_PORT_DEFAULT}`;
