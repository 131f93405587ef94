/** Which events are told to a session of their own accord, rather than as the answer to a request of its. */
import type { LockEvent, SessionId } from '../../api/entry.ts';

/** Whom an event concerns that is not the answer to a request of its own; null: nobody. */
export function sessionToTell(event: LockEvent): SessionId | null {
  switch (event.type) {
    case 'granted':
    case 'refused':
      return event.fromQueue ? event.session : null;
    case 'expired':
    case 'revoking':
    case 'revoked':
      return event.session;
    case 'sessionEnding':
      return event.cause === 'closed' ? null : event.session;
    default:
      return null;
  }
}
