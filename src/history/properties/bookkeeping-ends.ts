/** Bookkeeping of grants: their ends and forced ends name a hold that exists, of that session, in the state it must be in. */
import type { Book } from '../book/book.ts';
import type { GrantBook } from '../book/subjects.ts';
import type { PlacedEvent } from '../verdict.ts';

/** Why an event does not fit, and the earlier event that shows it. */
export interface Misfit {
  readonly why: string;
  readonly because?: PlacedEvent | null | undefined;
}

export function misfitOfGrantEnd(placed: PlacedEvent, book: Book): Misfit | null {
  const { event } = placed;
  if (!('token' in event && 'name' in event && 'session' in event)) return null;
  const hold = book.hold(event.name, event.token);
  if (hold === undefined) {
    const before = book.memory.granted(event.token);
    return {
      why: `nobody holds the name with token ${event.token}`,
      because: before?.ended ?? before?.granted,
    };
  }
  if (hold.session.id !== event.session) {
    return { why: `session ${hold.session.id} holds token ${event.token}`, because: hold.granted };
  }
  const { session } = hold;
  switch (event.type) {
    case 'released':
      if (event.cause === 'release') return mustBeAlive(hold) ?? misfitOfKey(event, hold);
      if (event.key !== '' || event.remaining !== 0) {
        return { why: 'the close of a session ends the whole grant', because: hold.granted };
      }
      if (session.state === 'ending' && session.cause === 'closed') return null;
      return { why: 'released by the close of a session that was not closed', because: session.ending };
    case 'expired':
      if (session.state === 'ending' && session.cause === event.cause && event.cause !== 'closed')
        return null;
      return { why: `cause ${event.cause}, which is not what ends the session`, because: session.ending };
    case 'cancelled':
      return mustBeAlive(hold) ?? misfitOfKey(event, hold);
    case 'revoking':
      if (hold.revoking !== null) return { why: 'it is being revoked already', because: hold.revoking };
      if (event.until === placed.at + session.ttlMs) return null;
      return {
        why: `until ${event.until}, one TTL would be ${placed.at + session.ttlMs}`,
        because: session.opened,
      };
    case 'revoked':
      return misfitOfRevoked(event.unsafe, event.cause, hold);
    default:
      return null;
  }
}

/** A release or cancel takes one of the keys that hold the grant, and tells how many are left (rule C6). */
function misfitOfKey(
  { key, remaining }: { readonly key: string; readonly remaining: number },
  hold: GrantBook,
): Misfit | null {
  const keys = [...hold.requests].map((request) => request.key);
  if (!keys.includes(key)) {
    return { why: `key ${JSON.stringify(key)} does not hold the grant`, because: hold.granted };
  }
  return remaining === keys.length - 1
    ? null
    : { why: `${remaining} keys are said to remain, ${keys.length - 1} do`, because: hold.granted };
}

function mustBeAlive({ session }: GrantBook): Misfit | null {
  return session.state === 'alive'
    ? null
    : { why: `its session is ${session.state}`, because: session.ending };
}

function misfitOfRevoked(unsafe: boolean, cause: string, hold: GrantBook): Misfit | null {
  if (unsafe) {
    if (hold.brokenNow !== null && cause === 'break') return null;
    return { why: 'unsafe without a break that asked for it', because: hold.granted };
  }
  if (hold.revoking?.event.type !== 'revoking') return { why: 'no revoke had begun', because: hold.granted };
  const begun = hold.revoking.event.cause;
  return begun === cause ? null : { why: `cause ${cause}, it had begun as ${begun}`, because: hold.revoking };
}
