/** The properties in the order in which they are reported. Each call makes fresh ones: some keep a state of their own. */
import type { Property } from '../property.ts';
import type { PropertyName } from '../verdict.ts';
import { belief } from './belief.ts';
import { bookkeeping } from './bookkeeping.ts';
import { durability } from './durability.ts';
import { eventOrder } from './event-order.ts';
import { exactlyOncePerKey } from './exactly-once-per-key.ts';
import { exclusion } from './exclusion.ts';
import { fifo } from './fifo.ts';
import { freedInTime } from './freed-in-time.ts';
import { limits } from './limits.ts';
import { liveness } from './liveness.ts';
import { lockDelay } from './lock-delay.ts';
import { lossIsTold } from './loss-is-told.ts';
import { noEarlyExpiry } from './no-early-expiry.ts';
import { noGhostGrants } from './no-ghost-grants.ts';
import { oneWriterPerEpoch } from './one-writer-per-epoch.ts';
import { reentrancy } from './reentrancy.ts';
import { risingTokens } from './rising-tokens.ts';

/**
 * Those that can be judged when a record does not begin with entry 1. The others ask what was before: who held a name that somebody is queued
 * for, how many hold.
 */
const JUDGED_FROM_THE_MIDDLE: ReadonlySet<PropertyName> = new Set([
  'exclusion',
  'rising-tokens',
  'fifo',
  'no-early-expiry',
  'lock-delay',
  'no-ghost-grants',
  'exactly-once-per-key',
  'reentrancy',
  'one-writer-per-epoch',
  'event-order',
]);
/** Of these, those that know enough only of sessions which were opened within the record. */
export const NEEDS_THE_SESSION: ReadonlySet<PropertyName> = new Set([
  'no-early-expiry',
  'lock-delay',
  'no-ghost-grants',
  'exactly-once-per-key',
  'reentrancy',
]);

export function propertiesFromTheMiddle(): readonly Property[] {
  return allProperties(true).filter(({ name }) => JUDGED_FROM_THE_MIDDLE.has(name));
}

export function allProperties(startsInMiddle = false): readonly Property[] {
  return [
    exclusion(),
    risingTokens(startsInMiddle),
    fifo(),
    noEarlyExpiry(),
    freedInTime(),
    lockDelay(),
    noGhostGrants(),
    exactlyOncePerKey(),
    durability(),
    reentrancy(),
    belief(),
    lossIsTold(),
    limits(),
    oneWriterPerEpoch(startsInMiddle),
    eventOrder(startsInMiddle),
    bookkeeping(),
    liveness(),
  ];
}
