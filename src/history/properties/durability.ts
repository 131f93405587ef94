/**
 * Promise 1: what a client was told is in the committed record: its grant with the same token, name and key, its release,
 * its session. Nothing acknowledged is lost by crash, restart or leader change (rules C13, L2).
 */
import type { RequestBook } from '../book/subjects.ts';
import { NEVER } from '../book/subjects.ts';
import type { Property } from '../property.ts';
import type { ClientRecord } from '../records.ts';

export function durability(): Property {
  return {
    name: 'durability',
    rules: 'promise 1, rules C13, L2',
    onClient(record, { session, request }, report) {
      if (record.type !== 'grantReported' && record.type !== 'heldInterval') return;
      if (request === null) return;
      const told = record.type === 'grantReported' ? record.key : request.key;
      if (request.session === session && request.name === record.name && request.key === told) return;
      report({
        message:
          `session ${record.session} was told that token ${record.token} is its grant of ${JSON.stringify(record.name)}; ` +
          `the record gives it to session ${request.session.id}, name ${JSON.stringify(request.name)}`,
        name: record.name,
        tokens: [record.token],
        shows: [request.granted],
      });
    },
    onUnfounded(record, why, report) {
      if (why === 'neverGranted' && record.type !== 'grantReported' && record.type !== 'heldInterval') return;
      const message = unfounded(record);
      if (message === null) return;
      const ofGrant = 'token' in record ? { name: record.name, tokens: [record.token] } : {};
      report({ message, ...ofGrant });
    },
    onLastRequest(request, _book, report) {
      const confirmed = confirmedInVain(request);
      if (confirmed === null) return;
      report({
        message:
          `the ${confirmed.what} of key ${JSON.stringify(request.key)} (token ${request.token}) was confirmed at ${confirmed.at}; ` +
          (request.ended === null
            ? 'the record has no end of it'
            : `it ended at ${request.ended.runAt} (run time)`),
        name: request.name,
        tokens: request.token > 0 ? [request.token] : [],
        shows: [request.granted ?? request.queued, request.ended],
      });
    },
  };
}

function unfounded(record: ClientRecord): string | null {
  switch (record.type) {
    case 'grantReported':
    case 'heldInterval':
      return `session ${record.session} was told of token ${record.token}, which the record does not have`;
    case 'keepaliveAcknowledged':
      return `a keepalive of session ${record.session} was acknowledged, but the record does not have the session`;
    default:
      return null;
  }
}

/** A release or cancel that was confirmed before the record has it. Grants after a confirmed cancel are ghosts, reported as such. */
function confirmedInVain(
  request: RequestBook,
): { readonly what: 'release' | 'cancel'; readonly at: number } | null {
  const endedAt =
    request.state === 'held' || request.state === 'waiting' ? NEVER : (request.ended?.runAt ?? -NEVER);
  if (endedAt > request.releaseConfirmedAt) return { what: 'release', at: request.releaseConfirmedAt };
  const began = request.granted ?? request.queued;
  if (began === null || began.runAt > request.cancelConfirmedAt) return null;
  return endedAt > request.cancelConfirmedAt ? { what: 'cancel', at: request.cancelConfirmedAt } : null;
}
