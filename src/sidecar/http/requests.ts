/** What callers may send: bodies and query parameters. Unknown fields are refused, so that a slip is not ignored. */
import * as z from 'zod';
import { MODES } from '../../api/config.ts';
import {
  CLIENT_BYTES_MAX,
  HOLD_MS_MAX,
  HOLD_MS_MIN,
  KEY_BYTES_MAX,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  PERMITS_MAX,
  PURPOSE_BYTES_MAX,
  RESOURCE_BYTES_MAX,
  WAIT_MS_MAX,
} from '../../api/limits.ts';
import { text, token, ttlSeconds, wholeNumber } from './fields.ts';

/** Ids are made by the sidecar and much shorter; the bound keeps junk out of its tables. */
export const SESSION_ID_BYTES_MAX = 128;
/** An alias is a DNS label. */
const ALIAS_BYTES_MAX = 63;

const sessionBounds = { min: 1, max: SESSION_ID_BYTES_MAX } as const;
const sessionId = text(sessionBounds, 'The session, as POST /v1/sessions named it.');
const clientBounds = { min: 1, max: CLIENT_BYTES_MAX } as const;
const keyBounds = { min: 1, max: KEY_BYTES_MAX } as const;

export const nothing = z.strictObject({});

export const openBody = z.strictObject({
  client: text(clientBounds, 'What the application calls itself; shown to people.'),
  ttl_s: ttlSeconds.exactOptional().meta({
    description:
      'How long the session outlives its last keepalive, in seconds; by default what is held in a LockNamespace does so ' +
      'for the ttl of that LockNamespace.',
  }),
  keepalive: z.enum(['stream', 'app', 'both']).meta({
    description:
      'What proves that the application lives: its open event stream, its keepalive calls, or both (either missing ends the session).',
  }),
  max_hold_ms: wholeNumber(
    HOLD_MS_MIN,
    HOLD_MS_MAX,
    'No grant of this session lasts longer, in milliseconds; by default the maxHold of the LockNamespace.',
  ).exactOptional(),
});

export const acquireBody = z
  .strictObject({
    session_id: text(
      sessionBounds,
      'Without it a session is opened for this one lock; the answer names it, and /renew renews it.',
    ).exactOptional(),
    client: text(
      clientBounds,
      'Only without session_id: what the application calls itself; shown to people.',
    ).exactOptional(),
    ttl_s: ttlSeconds.exactOptional().meta({
      description:
        'Only without session_id: TTL of the session opened for this lock, in seconds; by default the ttl of the LockNamespace.',
    }),
    owner: text(
      { min: 1, max: OWNER_BYTES_MAX },
      'Who holds the lock, shown to people; by default the client.',
    ).exactOptional(),
    mode: z
      .enum(MODES)
      .default('exclusive')
      .meta({
        description:
          '`exclusive`: one holder. `shared`: any number of them, for readers. `semaphore`: as many as there are permits. ' +
          'The LockNamespace must allow the mode, and declare semaphores by name.',
      }),
    permits: wholeNumber(
      1,
      PERMITS_MAX,
      'With mode `semaphore`: how many permits to take, together or not at all. Otherwise 1.',
    ).default(1),
    wait_ms: wholeNumber(
      0,
      WAIT_MS_MAX,
      'How long to wait in the queue, in milliseconds; 0 = not at all.',
    ).default(0),
    reentrant: z
      .boolean()
      .default(false)
      .meta({
        description:
          'Joins a grant that the session holds already, if that was taken re-entrantly too, by the same owner, in the same ' +
          'mode: same token, one acquire more to give back. Needs `request`, which names this acquire at its release.',
      }),
    purpose: text({ min: 0, max: PURPOSE_BYTES_MAX }, 'What for, shown to people.').default(''),
    request: text(
      keyBounds,
      'Retry key: a repeated acquire of the session with the same key is the same acquire, not a second one.',
    ).exactOptional(),
  })
  .superRefine(({ mode, permits, reentrant, request }, context) => {
    if (permits > 1 && mode !== 'semaphore') {
      context.addIssue({
        code: 'custom',
        path: ['permits'],
        message: `must be 1 with mode ${mode}; only a lock of mode semaphore has permits`,
        params: { limit: 1 },
      });
    }
    if (reentrant && request === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['request'],
        message: 'is required with reentrant: it names this acquire when it is given back',
        params: { limit: `1 to ${KEY_BYTES_MAX} bytes, another one for each acquire` },
      });
    }
  })
  .superRefine((body, context) => {
    if (body.session_id === undefined) return;
    for (const field of ['client', 'ttl_s'] as const) {
      if (body[field] === undefined) continue;
      context.addIssue({
        code: 'custom',
        path: [field],
        message: 'belongs to an acquire without session_id; the session has its own',
        params: { limit: 'only without session_id' },
      });
    }
  });

export const releaseBody = z.strictObject({
  session_id: sessionId,
  token,
  request: text(
    keyBounds,
    'The retry key of the acquire that is given back. Needed for a re-entrant grant, which is over with the last of its ' +
      'acquires; ignored otherwise.',
  ).exactOptional(),
});

export const renewBody = z.strictObject({ session_id: sessionId, token });

export const staleReportBody = z.strictObject({
  token: token.meta({ description: 'The token that the resource refused.' }),
  resource: text({ min: 1, max: RESOURCE_BYTES_MAX }, 'The resource that refused it.'),
});

export const listQuery = z.strictObject({
  prefix: text(
    { min: 0, max: ALIAS_BYTES_MAX + 1 + NAME_BYTES_MAX },
    'Only names that start so: at least `<alias>/`. Empty = the locks of all namespaces.',
  )
    .superRefine((prefix, context) => {
      if (prefix === '' || prefix.indexOf('/') > 0) return;
      context.addIssue({
        code: 'custom',
        message: 'must contain at least an alias and a slash, for example payouts%2F',
        params: { limit: '<alias>/...' },
      });
    })
    .default(''),
  limit: wholeNumber(1, LIST_LIMIT_MAX, 'Locks in one answer.').default(LIST_LIMIT_DEFAULT),
  continue: z.string().exactOptional().meta({ description: 'The value of `continue` of the page before.' }),
});

export const heldQuery = z.strictObject({ token });
