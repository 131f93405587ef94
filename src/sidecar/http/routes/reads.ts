/** Routes that only look: one lock, many locks, "is it still mine?". */
import { errorAnswer, heldAnswer, listAnswer, lock } from '../answers.ts';
import { decodeContinue, encodeContinue } from '../continue.ts';
import { heldQuery, listQuery, nothing } from '../requests.ts';
import { jsonRoute, type Route } from '../route.ts';
import { deadlineBody, lockBody } from '../views.ts';
import { type ApiDependencies, JSON_TYPE } from './dependencies.ts';

const NAME = 'payouts%2Fmerchant-48213';
const TOKEN = 1_871_905_113_735_168;
const HOLDER_EXAMPLE = {
  session: 7,
  client: 'payout-worker-1',
  owner: 'nightly-payout',
  purpose: 'pay batch 7',
  token: TOKEN,
  mode: 'exclusive',
  permits: 1,
  held_for_ms: 4_210,
  revoking: null,
};
const WAITER_EXAMPLE = {
  session: 9,
  client: 'payout-worker-2',
  owner: 'payout-worker-2',
  mode: 'exclusive',
  permits: 1,
  waited_ms: 2_004,
};
const LOCK_EXAMPLE = {
  name: 'payouts/merchant-48213',
  mode: 'exclusive',
  holders: [HOLDER_EXAMPLE],
  holder_count: 1,
  holder: HOLDER_EXAMPLE,
  token: TOKEN,
  owner: 'nightly-payout',
  purpose: 'pay batch 7',
  held_for_ms: 4_210,
  waiters: 1,
  queue: [WAITER_EXAMPLE],
  lock_delay_ms: 0,
  quarantined: false,
};

const getLock = jsonRoute({
  id: 'getLock',
  method: 'GET',
  path: '/v1/locks/{name}',
  aliases: ['/locks/{name}'],
  summary: 'Look at a lock',
  description:
    'A name that nobody holds is answered too, with `holder` null. `holders` shows everybody who holds it, which may be ' +
    'many with modes `shared` and `semaphore`; `queue` shows the first waiters, `waiters` counts all.',
  body: null,
  query: nothing,
  answer: lock,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['INVALID', 'UNAUTHENTICATED', 'FORBIDDEN', 'NAMESPACE_NOT_FOUND', 'RATE_LIMITED', 'UNAVAILABLE'],
  example: { path: `/v1/locks/${NAME}`, answer: LOCK_EXAMPLE },
  async handle({ parameter }, { service }: ApiDependencies) {
    return lockBody(await service.getLock(parameter));
  },
});

const listLocks = jsonRoute({
  id: 'listLocks',
  method: 'GET',
  path: '/v1/locks',
  aliases: ['/locks'],
  summary: 'List locks',
  description:
    'Locks that are held, waited for, delayed or quarantined, in order of their names. `continue` of the answer fetches ' +
    'the next page; it is opaque. In the query `+` is a blank, as in every form; send a plus as %2B.',
  body: null,
  query: listQuery,
  answer: listAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['INVALID', 'UNAUTHENTICATED', 'FORBIDDEN', 'NAMESPACE_NOT_FOUND', 'RATE_LIMITED', 'UNAVAILABLE'],
  example: { path: '/v1/locks?prefix=payouts%2F&limit=1', answer: { locks: [LOCK_EXAMPLE] } },
  async handle({ query }, { service }: ApiDependencies) {
    const after = query.continue === undefined ? undefined : decodeContinue(query.continue, query.prefix);
    const page = await service.listLocks({
      prefix: query.prefix,
      limit: query.limit,
      ...(after !== undefined && { after }),
    });
    const locks = page.locks.map(lockBody);
    return page.next === undefined ? { locks } : { locks, continue: encodeContinue(page.next) };
  },
});

const isHeld = jsonRoute({
  id: 'isHeld',
  method: 'GET',
  path: '/v1/locks/{name}/held',
  aliases: ['/locks/{name}/held'],
  summary: 'Ask whether a token still holds the lock',
  description:
    'Answered from the monotonic clock of this machine, without any network: false from the deadline on, whatever happened. ' +
    'While the grant is being taken away `revoking` says why, and the deadline moves no more: finish or stop, and release. ' +
    'After a restart of the sidecar it is false too, until the lock group has confirmed the session; renew waits for that.',
  body: null,
  query: heldQuery,
  answer: heldAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['INVALID', 'FORBIDDEN', 'NAMESPACE_NOT_FOUND', 'UNAVAILABLE'],
  example: {
    path: `/v1/locks/${NAME}/held?token=${TOKEN}`,
    answer: { held: true, deadline_in_ms: 9_120, deadline_monotonic_ns: '81601207500000' },
  },
  async handle({ parameter, query }, { service }: ApiDependencies) {
    const { held, deadlineInMs, deadlineMonotonicNs, revoking } = service.held(parameter, query.token);
    if (deadlineInMs === undefined || deadlineMonotonicNs === undefined) return { held };
    const deadline = deadlineBody({ deadlineInMs, deadlineMonotonicNs });
    return { held, ...deadline, ...(revoking !== undefined && { revoking }) };
  },
});

export const readRoutes: readonly Route<ApiDependencies>[] = [getLock, listLocks, isHeld];
