/** The service's shapes as JSON bodies: snake case, units in the names, 64-bit values as strings. */
import type * as z from 'zod';
import type { HolderView, LockView, WaiterView } from '../../api/wire.ts';
import type { Deadline, Granted, StreamLine } from '../service.ts';
import type * as answers from './answers.ts';

type Body<Schema extends z.ZodType> = z.output<Schema>;

/** Waiters shown with a lock; `waiters` counts them all. */
const QUEUE_SHOWN_MAX = 20;

export function deadlineBody(deadline: Deadline): Body<typeof answers.deadlineAnswer> {
  return {
    deadline_in_ms: Math.floor(deadline.deadlineInMs),
    deadline_monotonic_ns: String(deadline.deadlineMonotonicNs),
  };
}

export function grantBody(granted: Granted): Body<typeof answers.grant> {
  return {
    session_id: granted.sessionId,
    token: granted.token,
    lease_ttl_ms: granted.leaseTtlMs,
    ...deadlineBody(granted),
    ...(granted.revoking !== undefined && { revoking: granted.revoking }),
  };
}

export function holderBody(holder: HolderView): Body<typeof answers.holder> {
  return {
    session: holder.session,
    client: holder.client,
    owner: holder.owner,
    purpose: holder.purpose,
    token: holder.token,
    mode: holder.mode,
    permits: holder.permits,
    held_for_ms: Math.floor(holder.heldForMs),
    revoking: holder.revoking,
  };
}

function waiterBody(waiter: WaiterView): Body<typeof answers.waiter> {
  return {
    session: waiter.session,
    client: waiter.client,
    owner: waiter.owner,
    mode: waiter.mode,
    permits: waiter.permits,
    waited_ms: Math.floor(waiter.waitedMs),
  };
}

export function lockBody(lock: LockView): Body<typeof answers.lock> {
  const holders = lock.holders.map(holderBody);
  const holder = holders[0] ?? null;
  return {
    name: lock.name,
    mode: holder?.mode ?? null,
    holders,
    holder_count: lock.holderCount,
    holder,
    token: holder?.token ?? null,
    owner: holder?.owner ?? null,
    purpose: holder?.purpose ?? null,
    held_for_ms: holder?.held_for_ms ?? null,
    waiters: lock.waiterCount,
    queue: lock.waiters.slice(0, QUEUE_SHOWN_MAX).map(waiterBody),
    lock_delay_ms: Math.ceil(lock.lockDelayMs),
    quarantined: lock.quarantined,
  };
}

export function lineBody(line: StreamLine): Body<typeof answers.eventLine> {
  switch (line.event) {
    case 'alive':
      return { event: 'alive' };
    case 'queued':
      return { event: 'queued', name: line.name, position: line.position, ...requestOf(line) };
    case 'granted':
      return {
        event: 'granted',
        name: line.name,
        token: line.token,
        ...requestOf(line),
        ...deadlineOf(line),
      };
    case 'jeopardy':
      return { event: 'jeopardy', ...deadlineOf(line) };
    case 'restored':
      return { event: 'restored', ...deadlineOf(line) };
    case 'revoking':
      return {
        event: 'revoking',
        name: line.name,
        token: line.token,
        cause: line.cause,
        ...deadlineOf(line),
      };
    case 'lost':
      return { event: 'lost', name: line.name, token: line.token, reason: line.reason };
    case 'sessionLost':
      return { event: 'session_lost', reason: line.reason };
  }
}

function requestOf(line: { readonly request?: string }): { request?: string } {
  return line.request === undefined ? {} : { request: line.request };
}

function deadlineOf(line: { readonly deadlineInMs: number }): { deadline_in_ms: number } {
  return { deadline_in_ms: Math.floor(line.deadlineInMs) };
}
