/** Routes that change locks: acquire, release, renew, report a stale token. */
import {
  acquiredAnswer,
  errorAnswer,
  notAcquiredAnswer,
  recordedAnswer,
  releasedAnswer,
  renewedAnswer,
} from '../answers.ts';
import { secondsToMs } from '../fields.ts';
import { acquireBody, nothing, releaseBody, renewBody, staleReportBody } from '../requests.ts';
import { jsonRoute, type Route } from '../route.ts';
import { grantBody } from '../views.ts';
import { type ApiDependencies, JSON_TYPE } from './dependencies.ts';

const SESSION = '7d0f2ab64f1c';
const NAME = 'payouts%2Fmerchant-48213';
const TOKEN = 1_871_905_113_735_168;
const DEADLINE = { deadline_in_ms: 12_000, deadline_monotonic_ns: '81601207500000' };

const acquire = jsonRoute({
  id: 'acquireLock',
  method: 'POST',
  path: '/v1/locks/{name}/acquire',
  aliases: ['/v1/locks/{name}:acquire', '/locks/{name}/acquire'],
  summary: 'Take a lock, waiting for it if asked to',
  description:
    'Waiters of a name are granted in the order of their requests. Hanging up cancels the request, and takes back the ' +
    'lock if it was granted in that moment. Pass `token` on to whatever the lock protects: it must refuse a token lower ' +
    'than the highest it has seen. Stop working at the deadline unless it was moved by then. Without `session_id` a ' +
    'session is opened for this one lock: the answer names it, renew keeps it alive. With `session_id` and `request` the ' +
    'call may be repeated after a lost answer: it takes the lock once. Without `session_id` a repeat is another session, ' +
    'and waits for the first like anybody: nothing says that both come from one caller. A caller that hangs up while its answer is under way may keep a ' +
    'grant that it never heard of; so send a `request` with your session, and ask again with it. A session may hold a `shared` or `semaphore` ' +
    'lock several times, each under a token of its own; such tokens only order grants, and a resource that refuses lower ' +
    'ones would refuse valid holders. With `reentrant` a session that holds the lock gets the same token again; each such ' +
    'acquire is given back by itself, under its `request`.',
  body: acquireBody,
  query: nothing,
  answer: acquiredAnswer,
  contentType: JSON_TYPE,
  refusal: notAcquiredAnswer,
  inRefusals: { acquired: false },
  errors: [
    'INVALID',
    'UNAUTHENTICATED',
    'FORBIDDEN',
    'NOT_APPROVED',
    'QUOTA_EXCEEDED',
    'NAMESPACE_NOT_FOUND',
    'HELD',
    'WAIT_TIMEOUT',
    'STALE_TOKEN',
    'CANCELLED',
    'QUARANTINED',
    'SESSION_EXPIRED',
    'NOT_HELD',
    'BODY_TOO_LARGE',
    'QUEUE_FULL',
    'RATE_LIMITED',
    'UNAVAILABLE',
  ],
  example: {
    path: `/v1/locks/${NAME}/acquire`,
    body: { session_id: SESSION, owner: 'nightly-payout', wait_ms: 30_000, purpose: 'pay batch 7' },
    answer: { acquired: true, session_id: SESSION, token: TOKEN, lease_ttl_ms: 15_000, ...DEADLINE },
  },
  async handle({ parameter, body, raw }, { service }: ApiDependencies) {
    const granted = await service.acquire(parameter, {
      mode: body.mode,
      permits: body.permits,
      reentrant: body.reentrant,
      waitMs: body.wait_ms,
      purpose: body.purpose,
      hangUp: raw.hangUp(),
      ...(body.session_id !== undefined && { sessionId: body.session_id }),
      ...(body.client !== undefined && { client: body.client }),
      ...(body.ttl_s !== undefined && { ttlMs: secondsToMs(body.ttl_s) }),
      ...(body.owner !== undefined && { owner: body.owner }),
      ...(body.request !== undefined && { request: body.request }),
    });
    return { acquired: true as const, ...grantBody(granted) };
  },
});

const release = jsonRoute({
  id: 'releaseLock',
  method: 'POST',
  path: '/v1/locks/{name}/release',
  aliases: ['/v1/locks/{name}:release', '/locks/{name}/release'],
  summary: 'Give a lock back',
  description:
    'Names the token, so a late or repeated release never ends a newer grant. Repeating it is harmless: `already` is true. ' +
    'A release goes on when its caller hangs up. Of a re-entrant grant it gives back the acquire of its `request`; the lock ' +
    'is free with the last one.',
  body: releaseBody,
  query: nothing,
  answer: releasedAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: [
    'INVALID',
    'UNAUTHENTICATED',
    'FORBIDDEN',
    'NAMESPACE_NOT_FOUND',
    'STALE_TOKEN',
    'SESSION_EXPIRED',
    'NOT_HELD',
    'BODY_TOO_LARGE',
    'UNAVAILABLE',
  ],
  example: {
    path: `/v1/locks/${NAME}/release`,
    body: { session_id: SESSION, token: TOKEN },
    answer: { released: true },
  },
  async handle({ parameter, body }, { service }: ApiDependencies) {
    const { already } = await service.release(parameter, {
      sessionId: body.session_id,
      token: body.token,
      ...(body.request !== undefined && { request: body.request }),
    });
    return already ? { released: true as const, already: true as const } : { released: true as const };
  },
});

const renew = jsonRoute({
  id: 'renewLock',
  method: 'POST',
  path: '/v1/locks/{name}/renew',
  aliases: ['/v1/locks/{name}:renew', '/locks/{name}/renew'],
  summary: 'Renew the session of a grant and check the grant',
  description:
    'A keepalive of the session that also says whether this token still holds the lock, and until when. The deadline counts ' +
    'from the last keepalive that the lock service has acknowledged; the sidecar sends one every TTL/5 as long as the ' +
    'application lives, so this call need not move it at once. The deadline of a grant that is being taken away moves no ' +
    'more; `revoking` says so, and why: stop working, and give it back. Without this call, or another call of the session, it ends one TTL ' +
    'after the last one.',
  body: renewBody,
  query: nothing,
  answer: renewedAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: [
    'INVALID',
    'UNAUTHENTICATED',
    'FORBIDDEN',
    'NAMESPACE_NOT_FOUND',
    'STALE_TOKEN',
    'SESSION_EXPIRED',
    'NOT_HELD',
    'BODY_TOO_LARGE',
    'UNAVAILABLE',
  ],
  example: {
    path: `/v1/locks/${NAME}/renew`,
    body: { session_id: SESSION, token: TOKEN },
    answer: { renewed: true, session_id: SESSION, token: TOKEN, lease_ttl_ms: 15_000, ...DEADLINE },
  },
  async handle({ parameter, body }, { service }: ApiDependencies) {
    const granted = await service.renew(parameter, { sessionId: body.session_id, token: body.token });
    return { renewed: true as const, ...grantBody(granted) };
  },
});

const reportStale = jsonRoute({
  id: 'reportStaleToken',
  method: 'POST',
  path: '/v1/locks/{name}/stale-reports',
  aliases: ['/locks/{name}/stale-reports'],
  summary: 'Report that a resource refused a stale token',
  description:
    'Counted and recorded; changes no lock. A refusal proves that the fence worked, and that it was needed.',
  body: staleReportBody,
  query: nothing,
  answer: recordedAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: [
    'INVALID',
    'UNAUTHENTICATED',
    'FORBIDDEN',
    'QUOTA_EXCEEDED',
    'NAMESPACE_NOT_FOUND',
    'BODY_TOO_LARGE',
    'RATE_LIMITED',
    'UNAVAILABLE',
  ],
  example: {
    path: `/v1/locks/${NAME}/stale-reports`,
    body: { token: TOKEN, resource: 'payments.public.payout_batches' },
    answer: { recorded: true },
  },
  async handle({ parameter, body }, { service }: ApiDependencies) {
    await service.reportStale(parameter, { token: body.token, resource: body.resource });
    return { recorded: true as const };
  },
});

export const lockRoutes: readonly Route<ApiDependencies>[] = [acquire, release, renew, reportStale];
