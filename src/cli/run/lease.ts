/** When a lease demands what. */
import type { Lease, State } from './states.ts';

/** CMD is killed so long before the deadline. */
export const KILL_BEFORE_MS = 500;

/** When `tick` must be told at the latest; null: time alone changes nothing here. */
export function dueMs(state: State): number | null {
  switch (state.kind) {
    case 'confirming':
      return state.giveUpAtMs;
    case 'starting':
      return Math.min(termAtMs(state.lease), state.startByMs);
    case 'running':
      return termAtMs(state.lease);
    case 'terminating':
      return state.isKilled ? null : state.killAtMs;
    case 'opening':
    case 'waiting':
    case 'clearing':
    case 'releasing':
    case 'ended':
      return null;
  }
}

/** Whether the grant is to be renewed. */
export function isHolding(state: State): boolean {
  return state.kind === 'confirming' || state.kind === 'starting' || state.kind === 'running';
}

/** Token of the grant that is in use or about to be. */
export function tokenOf(state: State): number | null {
  switch (state.kind) {
    case 'confirming':
      return state.token;
    case 'starting':
    case 'running':
    case 'terminating':
      return state.lease.token;
    default:
      return null;
  }
}

/** When CMD is asked to end unless the lease is renewed by then. */
export function termAtMs({ deadlineMs, ttlMs }: Lease): number {
  return deadlineMs - Math.max(ttlMs / 5, KILL_BEFORE_MS);
}

/** When CMD is killed. */
export function killAtMs({ deadlineMs }: Lease): number {
  return deadlineMs - KILL_BEFORE_MS;
}
