/** The properties in the order in which they are reported. Each call makes fresh ones: some keep a state of their own. */
import type { Property } from '../property.ts';
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

export function allProperties(): readonly Property[] {
  return [
    exclusion(),
    risingTokens(),
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
    oneWriterPerEpoch(),
    eventOrder(),
    bookkeeping(),
    liveness(),
  ];
}
