/**
 * A grant that ended against its holder's will is reported lost to the application, once (cases A10, A11, J02).
 * Bound: one TTL and a second after the end, since a client that is cut off learns it from its own deadline (rule A1).
 * Excused: clients that gave the grant up, that were stopped, or that never learned of the grant.
 */
import type { Book } from '../book/book.ts';
import { type GrantBook, NEVER } from '../book/subjects.ts';
import type { Property } from '../property.ts';

const TOLD_WITHIN_MS = 1_000;

export function lossIsTold(): Property {
  return {
    name: 'loss-is-told',
    rules: 'promise 5, rules A1, S2',
    onClient(record, { grant }, report) {
      if (record.type !== 'lost' || grant === null || grant.timesLost < 2) return;
      report({
        message: `the loss of token ${record.token} was told ${grant.timesLost} times`,
        name: record.name,
        tokens: [record.token],
        shows: [grant.granted, grant.ended],
      });
    },
    onLastGrant(grant, book, report) {
      const { ended } = grant;
      if (ended === null || grant.reportedAt === NEVER) return;
      if (ended.event.type !== 'expired' && ended.event.type !== 'revoked') return;
      const deadline = toldBy(grant, ended.runAt, book);
      if (deadline === null || grant.lostAt <= deadline || grant.gaveUpAt <= deadline) return;
      report({
        message:
          `token ${grant.token} ended against its holder's will at ${ended.runAt} (run time); ` +
          `${grant.lostAt === NEVER ? 'nobody told its client' : `its client was told at ${grant.lostAt}`}, due by ${deadline}`,
        name: grant.name,
        tokens: [grant.token],
        shows: [grant.granted, ended],
      });
    },
  };
}

/** The run time by which the client must know; null: it could not be told, or the run ended before. */
function toldBy(grant: GrantBook, endedAt: number, book: Book): number | null {
  const boundMs = grant.session.ttlMs + TOLD_WITHIN_MS;
  let deadline = Math.max(endedAt, grant.reportedAt) + boundMs;
  for (const stop of grant.session.stops) {
    if (stop.from > deadline || stop.to <= endedAt) continue;
    if (stop.to === NEVER) return null;
    deadline = Math.max(deadline, stop.to + boundMs);
  }
  return deadline <= book.lastRunAt ? deadline : null;
}
