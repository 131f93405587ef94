/**
 * What all sub-commands share: exit codes (also those of docs/CLI.md) and where `leasehold dev` keeps its data.
 */
import type { ErrorCode } from '../api/errors.ts';

/** What was read is there, but wrong: a damaged log, a broken promise. */
export const EXIT_WRONG = 1;
/** Somebody else holds the lock, or the wait for it is over. */
export const EXIT_HELD = 120;
export const EXIT_QUEUE_FULL = 121;
/** The grant is over: it was lost while it was in use, or a token or session named is not in force any more. */
export const EXIT_LOST = 122;
export const EXIT_UNAVAILABLE = 123;
export const EXIT_USAGE = 125;
/** As shells say it: there is a command, but it could not be started. */
export const EXIT_CANNOT_RUN = 126;
/** A command that died of signal n ends with this plus n, as shells say it. */
export const EXIT_SIGNAL = 128;

export const DATA_FOLDER_DEFAULT = '.leasehold';
/** Within it, so that the commands of operators find both. */
export const GROUP_FOLDER_DEFAULT = '.leasehold/group';

/** With which exit code a refusal of the service ends a command. */
export const EXIT_OF_CODE: Readonly<Record<ErrorCode, number>> = {
  INVALID: EXIT_USAGE,
  UNAUTHENTICATED: EXIT_USAGE,
  FORBIDDEN: EXIT_USAGE,
  NOT_APPROVED: EXIT_USAGE,
  QUOTA_EXCEEDED: EXIT_UNAVAILABLE,
  NAMESPACE_NOT_FOUND: EXIT_USAGE,
  NOT_FOUND: EXIT_USAGE,
  METHOD_NOT_ALLOWED: EXIT_USAGE,
  HELD: EXIT_HELD,
  WAIT_TIMEOUT: EXIT_HELD,
  STALE_TOKEN: EXIT_LOST,
  CANCELLED: EXIT_UNAVAILABLE,
  QUARANTINED: EXIT_UNAVAILABLE,
  SESSION_EXPIRED: EXIT_LOST,
  NOT_HELD: EXIT_LOST,
  BODY_TOO_LARGE: EXIT_USAGE,
  QUEUE_FULL: EXIT_QUEUE_FULL,
  RATE_LIMITED: EXIT_UNAVAILABLE,
  UNAVAILABLE: EXIT_UNAVAILABLE,
};
