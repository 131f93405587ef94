/** What the checker says: which property was broken, by which events, and how much it looked at. */
import type { LockEvent, Token } from '../api/entry.ts';

export const PROPERTY_NAMES = [
  'exclusion',
  'rising-tokens',
  'fifo',
  'no-early-expiry',
  'freed-in-time',
  'lock-delay',
  'no-ghost-grants',
  'exactly-once-per-key',
  'durability',
  'reentrancy',
  'belief',
  'loss-is-told',
  'limits',
  'one-writer-per-epoch',
  'event-order',
  'bookkeeping',
  'liveness',
] as const;
export type PropertyName = (typeof PROPERTY_NAMES)[number];

/** An event with its place in the record. `runAt`: the same moment as `at`, on the time base of the run. */
export interface PlacedEvent {
  readonly lineage: string;
  readonly epoch: number;
  readonly index: number;
  /** Group time in ms. */
  readonly at: number;
  readonly runAt: number;
  readonly event: LockEvent;
}

export interface Violation {
  readonly property: PropertyName;
  /** The rules it breaks, such as `rule C3`. */
  readonly rules: string;
  readonly name?: string;
  readonly tokens: readonly Token[];
  /** Log indexes, rising, of the events in the excerpt and of entries that broke an order. */
  readonly indexes: readonly number[];
  readonly message: string;
  /** The smallest list of events that shows it, in the order of the record. */
  readonly excerpt: readonly PlacedEvent[];
}

export interface Counts {
  readonly entries: number;
  readonly events: number;
  readonly grants: number;
  readonly queued: number;
  readonly sessions: number;
  readonly takeOvers: number;
  readonly clientRecords: number;
  /** Client records that came too late (or in too great number) to be compared with anything: not proof of anything. */
  readonly unjudgedRecords: number;
  /** All violations, also those beyond the list's bound. */
  readonly violations: number;
}

export interface Verdict {
  readonly ok: boolean;
  readonly violations: readonly Violation[];
  readonly counts: Counts;
}
