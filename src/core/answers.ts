/**
 * What all commands of a session have in common: who may act, what is settled on the way, and how refusals look.
 */
import type { CommandResult } from '../api/entry.ts';
import { assert } from './assert.ts';
import { newestHold } from './crowd.ts';
import { isAlive } from './policy.ts';
import type { Session, State } from './state.ts';

export type Refused = Extract<CommandResult, { type: 'refused' }>;

export const DONE: CommandResult = { type: 'done' };
const SESSION_EXPIRED: Refused = {
  type: 'refused',
  code: 'SESSION_EXPIRED',
  message: 'the session is unknown or has ended',
};
const SUPERSEDED: Refused = {
  type: 'refused',
  code: 'SUPERSEDED',
  message: 'the session has been attached again since',
};

export function invalid(field: string, message: string, limit?: number): Refused {
  return { type: 'refused', code: 'INVALID', field, message, ...(limit === undefined ? {} : { limit }) };
}

/** The session a command may act for, or why it may not (rules C10, S3). */
export function actingSession(state: State, id: number, attach: number | null): Session | Refused {
  const session = state.sessions.get(id);
  if (session === undefined || !isAlive(session)) return SESSION_EXPIRED;
  if (attach !== null && attach !== session.attach) return SUPERSEDED;
  return session;
}

/** The client has seen these outcomes; what is over can be forgotten (rule C5). */
export function settle(session: Session, acks: readonly string[]): void {
  for (let i = 0; i < acks.length; i++) {
    const record = session.keys.get(acks[i] as string);
    if (record === undefined || record.settled || record.state.kind === 'waiting') continue;
    record.settled = true;
    session.unsettled--;
    if (record.state.kind === 'ended') session.keys.delete(record.request.key);
  }
  assert(session.unsettled >= 0, 'more outcomes were settled than there are');
}

/** STALE_TOKEN: held under a higher token; NOT_HELD otherwise. */
export function notHeld(state: State, name: string, token: number): Refused {
  const lock = state.locks.get(name);
  const newest = lock === undefined ? null : newestHold(lock);
  return newest !== null && newest.token > token
    ? {
        type: 'refused',
        code: 'STALE_TOKEN',
        message: `the lock is held under the higher token ${newest.token}`,
      }
    : { type: 'refused', code: 'NOT_HELD', message: `the lock is not held under token ${token}` };
}
