/** Routes of sessions: open, keep alive, listen, close. */
import { closedAnswer, deadlineAnswer, errorAnswer, eventLine, openAnswer } from '../answers.ts';
import { streamEvents } from '../events.ts';
import { secondsToMs } from '../fields.ts';
import { nothing, openBody } from '../requests.ts';
import { jsonRoute, type Route, route } from '../route.ts';
import { deadlineBody } from '../views.ts';
import { type ApiDependencies, JSON_TYPE } from './dependencies.ts';

const MS_PER_SECOND = 1_000;
const SESSION = '7d0f2ab64f1c';

const openSession = jsonRoute({
  id: 'openSession',
  method: 'POST',
  path: '/v1/sessions',
  aliases: ['/sessions'],
  summary: 'Open a session',
  description:
    'All grants and waits belong to a session and end with it. `keepalive` says what proves that the application lives. ' +
    '`stream`: the open event stream; a reconnect of the stream loses the locks, except after a restart of the sidecar. ' +
    '`app`: calls of keepalive; use it where connections do not last. `both`: either missing ends the session. ' +
    'A stream that is not opened within one TTL counts as missing. A frozen process keeps its connection open, ' +
    'so with `stream` alone no grant outlasts `max_hold_ms`.',
  body: openBody,
  query: nothing,
  answer: openAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: [
    'INVALID',
    'UNAUTHENTICATED',
    'FORBIDDEN',
    'QUOTA_EXCEEDED',
    'BODY_TOO_LARGE',
    'RATE_LIMITED',
    'UNAVAILABLE',
  ],
  example: {
    path: '/v1/sessions',
    body: { client: 'payout-worker-1', ttl_s: 15, keepalive: 'app' },
    answer: { session_id: SESSION, ttl_s: 15, keepalive_every_s: 3 },
  },
  async handle({ body }, { service }: ApiDependencies) {
    const opened = await service.openSession({
      client: body.client,
      keepalive: body.keepalive,
      ...(body.ttl_s !== undefined && { ttlMs: secondsToMs(body.ttl_s) }),
      ...(body.max_hold_ms !== undefined && { maxHoldMs: body.max_hold_ms }),
    });
    return {
      session_id: opened.sessionId,
      ttl_s: opened.ttlMs / MS_PER_SECOND,
      keepalive_every_s: opened.keepaliveEveryMs / MS_PER_SECOND,
    };
  },
});

const keepalive = jsonRoute({
  id: 'keepaliveSession',
  method: 'POST',
  path: '/v1/sessions/{id}/keepalive',
  aliases: ['/v1/sessions/{id}:keepalive', '/sessions/{id}/keepalive'],
  summary: 'Prove that the application lives',
  description:
    'The answer says until when the session may be trusted, and with it each grant that is not being taken away. One that ' +
    'is (broken, or held too long) ends before, and this answer does not tell: ask `held`, or listen for `revoking`. One ' +
    'TTL after the last call the session ends and its grants are lost. After a restart of the sidecar `deadline_in_ms` is 0 or less until the lock group has ' +
    'confirmed the session: go on calling, or renew a grant, which waits for that.',
  body: nothing,
  query: nothing,
  answer: deadlineAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['INVALID', 'UNAUTHENTICATED', 'FORBIDDEN', 'SESSION_EXPIRED', 'BODY_TOO_LARGE', 'UNAVAILABLE'],
  example: {
    path: `/v1/sessions/${SESSION}/keepalive`,
    answer: { deadline_in_ms: 11_950, deadline_monotonic_ns: '81604207500000' },
  },
  async handle({ parameter }, { service }: ApiDependencies) {
    return deadlineBody(await service.keepaliveSession(parameter));
  },
});

const events = route({
  id: 'streamEvents',
  method: 'GET',
  path: '/v1/sessions/{id}/events',
  aliases: ['/sessions/{id}/events'],
  streams: true,
  summary: 'Listen to what happens to the session',
  description:
    'One JSON object a line, at least one line every second (`alive`). `queued` and `granted`: the place of an acquire that waits, and its grant. `jeopardy`: no keepalive was acknowledged for half ' +
    'a TTL; `restored` may follow. `revoking`: the grant is being taken away. `lost`: the grant is over, for good. ' +
    '`session_lost` is the last line. In sessions with keepalive `stream` or `both` this stream is the proof that the ' +
    'application lives: closing it ends the session, and a reconnect of it loses the locks, except after a restart of ' +
    'the sidecar. Use keepalive `app` where connections do not last. A reader that leaves 1 MiB unread is cut off.',
  body: null,
  query: nothing,
  answer: eventLine,
  contentType: 'application/x-ndjson',
  refusal: errorAnswer,
  errors: ['INVALID', 'UNAUTHENTICATED', 'FORBIDDEN', 'SESSION_EXPIRED', 'UNAVAILABLE'],
  example: {
    path: `/v1/sessions/${SESSION}/events`,
    answer: [
      '{"event":"alive"}',
      '{"event":"lost","name":"payouts/merchant-48213","token":1871905113735168,"reason":"the session expired"}',
    ],
  },
  async reply({ parameter, raw }, dependencies: ApiDependencies) {
    streamEvents(parameter, raw, dependencies);
    return { type: 'streaming' };
  },
});

const close = jsonRoute({
  id: 'closeSession',
  method: 'DELETE',
  path: '/v1/sessions/{id}',
  aliases: ['/sessions/{id}'],
  summary: 'Close a session',
  description: 'Releases everything the session holds and gives up everything it waits for, at once.',
  body: null,
  query: nothing,
  answer: closedAnswer,
  contentType: JSON_TYPE,
  refusal: errorAnswer,
  errors: ['INVALID', 'UNAUTHENTICATED', 'FORBIDDEN', 'SESSION_EXPIRED', 'UNAVAILABLE'],
  example: { path: `/v1/sessions/${SESSION}`, answer: { closed: true } },
  async handle({ parameter }, { service }: ApiDependencies) {
    await service.closeSession(parameter);
    return { closed: true as const };
  },
});

export const sessionRoutes: readonly Route<ApiDependencies>[] = [openSession, keepalive, events, close];
