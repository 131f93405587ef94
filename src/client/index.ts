/**
 * The client library: `import { createClient } from 'leasehold'`. It speaks to the localhost API of a sidecar or of
 * `leasehold dev`, depends on nothing but Node.js (20 or newer), and keeps no state outside the clients that are made.
 * How to use it: docs/CLIENT.md. Checking tokens at the resource: `leasehold/fencing`.
 */
export type { Backoff } from './backoff.ts';
export { Client, createClient } from './client.ts';
export {
  type ErrorCode,
  type ErrorDetails,
  HeldError,
  LeaseholdError,
  LockLostError,
  type LossCause,
} from './errors.ts';
export type { HoldingAll } from './hold.ts';
export type { Holding, Lock } from './lock.ts';
export type { ClientOptions, LockOptions, TryOptions } from './options.ts';
export type { HolderDescription, LockDescription, WaiterDescription } from './views.ts';
