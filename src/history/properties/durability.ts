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
    onClient(record, { session, grant }, report) {
      if (record.type !== 'grantReported' && record.type !== 'heldInterval') return;
      if (grant === null || (grant.session === session && grant.name === record.name)) return;
      report({
        message:
          `session ${record.session} was told that token ${record.token} is its grant of ${JSON.stringify(record.name)}; ` +
          `the record gives it to session ${grant.session.id}, name ${JSON.stringify(grant.name)}`,
        name: record.name,
        tokens: [record.token],
        shows: [grant.granted],
      });
    },
    onLastGrant(grant, _book, report) {
      for (const key of grant.toldKeys) {
        if (grant.keys.has(key)) continue;
        report({
          message: `session ${grant.session.id} was told that key ${JSON.stringify(key)} has token ${grant.token}; the record gives it to others`,
          name: grant.name,
          tokens: [grant.token],
          shows: [grant.granted],
        });
      }
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
      const token = request.grant?.token ?? 0;
      report({
        message:
          `the ${confirmed.what} of key ${JSON.stringify(request.key)} (token ${token}) was confirmed at ${confirmed.at}; ` +
          (request.ended === null
            ? 'the record has no end of it'
            : `it ended at ${request.ended.runAt} (run time)`),
        name: request.name,
        tokens: token > 0 ? [token] : [],
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
  const releasedAt = releaseConfirmedAt(request);
  if (endedAt > releasedAt) return { what: 'release', at: releasedAt };
  const began = request.granted ?? request.queued;
  if (began === null || began.runAt > request.cancelConfirmedAt) return null;
  return endedAt > request.cancelConfirmedAt ? { what: 'cancel', at: request.cancelConfirmedAt } : null;
}

/** A release confirmed without its key says nothing about a grant that several acquires shared (rule C6). */
function releaseConfirmedAt({ key, grant }: RequestBook): number {
  if (grant === null) return NEVER;
  const unnamed = grant.keys.size === 1 ? grant.releasesConfirmed.get('') : undefined;
  return Math.min(grant.releasesConfirmed.get(key) ?? NEVER, unnamed ?? NEVER);
}
