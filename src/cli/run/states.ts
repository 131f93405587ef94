/**
 * Where a `leasehold run` can stand, what can happen to it, and what it can ask for. Times are milliseconds of LeaseTime.
 */
import type { ErrorCode } from '../../api/errors.ts';

export type WaitPolicy =
  | { readonly kind: 'none' }
  | { readonly kind: 'atMost'; readonly waitMs: number }
  /** As long as the LockNamespace allows. */
  | { readonly kind: 'namespace' };

export interface Plan {
  readonly name: string;
  readonly wait: WaitPolicy;
  readonly isSkippedIfHeld: boolean;
}

/** A grant in use. */
export interface Lease {
  readonly session: string;
  readonly token: number;
  readonly ttlMs: number;
  /** From the sidecar's promise, counted from the moment the renewal was *sent* (rule A1). */
  readonly deadlineMs: number;
}

/** What an acquire needs to know of those before it. */
export interface Search {
  readonly waitUntilMs: number;
  /** Acquires sent with a new `request` so far. */
  readonly attempt: number;
  readonly reopens: number;
}

export type State =
  | { readonly kind: 'opening'; readonly search: Search; readonly giveUpAtMs: number }
  | { readonly kind: 'waiting'; readonly search: Search; readonly session: string }
  /** Granted; CMD is not started before a renewal has said until when. */
  | {
      readonly kind: 'confirming';
      readonly session: string;
      readonly token: number;
      readonly ttlMs: number;
      readonly giveUpAtMs: number;
    }
  /** CMD's process exists and waits for the watchdog to let it go. */
  | { readonly kind: 'starting'; readonly lease: Lease; readonly startByMs: number }
  | { readonly kind: 'running'; readonly lease: Lease }
  | {
      readonly kind: 'terminating';
      readonly lease: Lease;
      readonly killAtMs: number;
      readonly isKilled: boolean;
      readonly exitCode: number;
    }
  /** CMD has ended; what it left behind in its process group is being ended. */
  | { readonly kind: 'clearing'; readonly session: string; readonly exitCode: number }
  | { readonly kind: 'releasing'; readonly exitCode: number }
  | { readonly kind: 'ended'; readonly exitCode: number };

export type Problem =
  | {
      readonly kind: 'refused';
      readonly code: ErrorCode;
      readonly message: string;
      readonly field?: unknown;
      readonly limit?: unknown;
    }
  | { readonly kind: 'unreachable'; readonly message: string };

export interface PassedSignal {
  readonly name: NodeJS.Signals;
  readonly number: number;
}

export type RunEvent =
  | { readonly type: 'opened'; readonly session: string }
  | { readonly type: 'openFailed'; readonly problem: Problem }
  | { readonly type: 'acquired'; readonly token: number; readonly ttlMs: number }
  | { readonly type: 'acquireFailed'; readonly problem: Problem }
  | { readonly type: 'renewed'; readonly deadlineMs: number }
  | { readonly type: 'renewFailed'; readonly problem: Problem }
  | { readonly type: 'revoking'; readonly token: number; readonly cause: string }
  | { readonly type: 'lost'; readonly token: number; readonly reason: string }
  | { readonly type: 'sessionLost'; readonly reason: string }
  | { readonly type: 'started' }
  | { readonly type: 'exited'; readonly code: number }
  | { readonly type: 'cleared' }
  | { readonly type: 'closed' }
  | { readonly type: 'signal'; readonly signal: PassedSignal }
  | { readonly type: 'watchdogKilled' }
  | { readonly type: 'watchdogDied' }
  /** Only time has passed. */
  | { readonly type: 'tick' };

export type Action =
  | { readonly type: 'open'; readonly afterMs: number }
  | {
      readonly type: 'acquire';
      readonly session: string;
      readonly waitMs: number;
      readonly attempt: number;
      readonly afterMs: number;
    }
  | { readonly type: 'hangUp' }
  /** Renew now and then every TTL/5, as long as the state is one that `isHolding`. */
  | { readonly type: 'keepRenewing'; readonly session: string; readonly token: number }
  | {
      readonly type: 'start';
      readonly session: string;
      readonly token: number;
      readonly killAtMs: number;
    }
  | { readonly type: 'tellWatchdog'; readonly killAtMs: number }
  /** To the whole process group of CMD. */
  | { readonly type: 'signalGroup'; readonly signal: NodeJS.Signals }
  | { readonly type: 'clearGroup' }
  | { readonly type: 'close'; readonly session: string }
  | { readonly type: 'say'; readonly text: string };

export interface Step {
  readonly state: State;
  readonly actions: readonly Action[];
}
