/**
 * Promise 4: nobody loses a session, a grant or a place in a queue before its time.
 * From client records: the TTL since the last acknowledged keepalive. From the record alone: a full TTL since the session
 * was opened and since each take-over (rule S5), the TTL of a revoke (rule C9), the limit of a wait; and that a cut of permits
 * takes grants only while they have too many, from the youngest on.
 */
import type { Book } from '../book/book.ts';
import { type SessionBook, usedPermits } from '../book/subjects.ts';
import type { Property, Report } from '../property.ts';
import type { PlacedEvent } from '../verdict.ts';

export function noEarlyExpiry(): Property {
  return {
    name: 'no-early-expiry',
    rules: 'promise 4, rules S1, S5, S6, C9',
    onEvent(placed, book, report) {
      const { event } = placed;
      if (event.type === 'sessionEnding' && event.cause === 'expired') {
        const session = book.sessions.get(event.session);
        if (session?.state === 'alive') judgeExpiry(session, placed, book, report);
      } else if (event.type === 'revoked' && !event.unsafe) {
        const revoking = book.hold(event.name, event.token)?.revoking;
        if (revoking?.event.type === 'revoking' && placed.at < revoking.event.until) {
          report({
            message: `token ${event.token} was revoked at ${placed.at}, though its holder had time until ${revoking.event.until}`,
            name: event.name,
            tokens: [event.token],
            shows: [revoking, placed],
          });
        }
      } else if (event.type === 'revoking' && event.cause === 'permitsCut') {
        judgeCut(placed, book, report);
      } else if (event.type === 'refused' && event.fromQueue && event.code === 'WAIT_TIMEOUT') {
        const request = book.request(event.session, event.key);
        if (request?.state === 'waiting' && placed.at < request.waitUntil) {
          report({
            message: `the wait of session ${event.session} timed out at ${placed.at}, before its limit ${request.waitUntil}`,
            name: event.name,
            shows: [request.queued, placed],
          });
        }
      }
    },
    onClient(record, { session }, report) {
      if (record.type !== 'keepaliveAcknowledged') return;
      if (session.ending !== null && session.cause === 'expired')
        judgeKeepalive(session, session.ending, report);
    },
  };
}

function judgeExpiry(session: SessionBook, placed: PlacedEvent, book: Book, report: Report): void {
  for (const since of [session.opened, book.takeOver]) {
    if (since === null || placed.at >= since.at + session.ttlMs) continue;
    report({
      message: `session ${session.id} expired ${placed.at - since.at} ms after ${since.event.type}; its TTL is ${session.ttlMs} ms`,
      shows: [since, placed],
    });
    return;
  }
  judgeKeepalive(session, placed, report);
}

function judgeCut(placed: PlacedEvent, book: Book, report: Report): void {
  const { event } = placed;
  if (event.type !== 'revoking') return;
  const allowed = book.permitsOf(event.name);
  const lasting = (book.names.get(event.name)?.holds ?? []).filter(
    ({ mode, revoking }) => mode === 'semaphore' && revoking === null,
  );
  const youngest = Math.max(...lasting.map(({ token }) => token));
  const used = usedPermits(lasting);
  if (allowed === undefined || lasting.length === 0) return;
  if (allowed !== null && used > allowed && youngest === event.token) return;
  report({
    message:
      allowed === null || used <= allowed
        ? `token ${event.token} was taken by a cut of permits, though ${used} are out of ${allowed ?? 'no number'}`
        : `token ${event.token} was taken by a cut of permits before the younger ${youngest}`,
    name: event.name,
    tokens: [event.token],
    shows: [...lasting.map(({ granted }) => granted), placed],
  });
}

function judgeKeepalive(session: SessionBook, ending: PlacedEvent, report: Report): void {
  if (ending.runAt >= session.keptAliveUntil) return;
  report({
    message: `session ${session.id} expired at ${ending.runAt} (run time), though an acknowledged keepalive covers it until ${session.keptAliveUntil}`,
    tokens: [...session.holds].map(({ token }) => token),
    shows: [session.opened, ending],
  });
}
