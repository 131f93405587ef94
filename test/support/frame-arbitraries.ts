/**
 * Arbitrary frames for fast-check: every variant of every union, every field over its whole range. The types of the tables make
 * sure that no variant is forgotten.
 */
import fc from 'fast-check';
import { MODES } from '../../src/api/config.ts';
import {
  type CommandResult,
  type GrantView,
  type HistoryEntry,
  type HolderView,
  type LockEvent,
  REVOKE_CAUSES,
  type WaitView,
} from '../../src/api/entry.ts';
import { ERRORS, type ErrorCode } from '../../src/api/errors.ts';
import { FORMAT_VERSION } from '../../src/api/limits.ts';
import type {
  AnswerBody,
  ClientFrame,
  ClientRequestBody,
  KeepaliveAnswer,
  KeepaliveRequest,
  KeepaliveStatus,
  LeaderFrame,
  LockView,
  Mark,
  Position,
  RelayFrame,
  ServerFrame,
  WaiterView,
} from '../../src/api/wire.ts';
import { COMMANDS } from './core-arbitraries.ts';

type Refused = Extract<CommandResult, { type: 'refused' }>;
type Rejected = Extract<AnswerBody, { type: 'rejected' }>;
type Variants<Union extends { readonly type: string }> = {
  readonly [Type in Union['type']]: fc.Arbitrary<Extract<Union, { type: Type }>>;
};

/** Whole numbers that protobuf writes in every length, most often around powers of two. */
const uint = fc.oneof(
  fc.nat(300),
  fc.maxSafeNat(),
  fc
    .tuple(fc.integer({ min: 0, max: 53 }), fc.integer({ min: -1, max: 1 }))
    .map(([power, offset]) => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, 2 ** power + offset))),
);
const uint32 = fc.nat(2 ** 32 - 1);
const text = fc
  .oneof(fc.string({ maxLength: 30 }), fc.string({ unit: 'binary', maxLength: 30 }))
  .filter((value) => value.isWellFormed());
const mode = fc.constantFrom(...MODES);
const code = fc.constantFrom(...(Object.keys(ERRORS) as ErrorCode[]));
const sessionEndCause = fc.constantFrom('closed', 'stream', 'expired', 'threw');
const revokeCause = fc.constantFrom(...REVOKE_CAUSES);
const refusalCode = fc.constantFrom(
  'INVALID',
  'FORBIDDEN',
  'QUOTA_EXCEEDED',
  'NAMESPACE_NOT_FOUND',
  'HELD',
  'WAIT_TIMEOUT',
  'QUARANTINED',
  'SESSION_EXPIRED',
  'QUEUE_FULL',
);
const few = { maxLength: 3 };

const ofSession = { session: uint, attach: uint };
const ofRequest = { name: text, session: uint, key: text };
const ofGrant = { name: text, session: uint, token: uint };
const position: fc.Arbitrary<Position> = fc.record({ lineage: text, epoch: uint, index: uint });

const holder: fc.Arbitrary<HolderView> = fc.record({
  session: uint,
  client: text,
  owner: text,
  purpose: text,
  token: uint,
  mode,
  permits: uint,
  heldForMs: uint,
  revoking: fc.option(revokeCause),
});
const waiter: fc.Arbitrary<WaiterView> = fc.record({
  session: uint,
  client: text,
  owner: text,
  mode,
  permits: uint,
  waitedMs: uint,
});
const lock: fc.Arbitrary<LockView> = fc.record({
  name: text,
  holders: fc.array(holder, few),
  holderCount: uint,
  waiters: fc.array(waiter, few),
  waiterCount: uint,
  lockDelayMs: uint,
  quarantined: fc.boolean(),
});
const grant: fc.Arbitrary<GrantView> = fc.record({
  name: text,
  token: uint,
  keys: fc.array(text, few),
  mode,
  revoking: fc.option(revokeCause),
});
const wait: fc.Arbitrary<WaitView> = fc.record({ name: text, key: text, position: uint });

const REQUESTS: Variants<ClientRequestBody> = {
  acquire: COMMANDS.acquire,
  release: COMMANDS.release,
  cancel: COMMANDS.cancel,
  closeSession: COMMANDS.closeSession,
  reportStale: COMMANDS.reportStale,
  open: fc.record({
    type: fc.constant('open'),
    client: text,
    ttlMs: uint,
    maxHoldMs: uint,
    secretHash: text,
  }),
  attachWithSecret: fc.record({ type: fc.constant('attachWithSecret'), ...ofSession, secret: text }),
  getLock: fc.record({ type: fc.constant('getLock'), name: text }),
  listLocks: fc.record({ type: fc.constant('listLocks'), prefix: text, after: text, limit: uint }),
};

/** `holder` may be there, be null, or be absent: three different things. */
const refused: fc.Arbitrary<Refused> = fc.record(
  {
    type: fc.constant('refused'),
    code: fc.oneof(code, fc.constant('SUPERSEDED')),
    message: text,
    field: text,
    limit: uint,
    holder: fc.option(holder),
    waiters: uint,
    lockDelayMs: uint,
  },
  { requiredKeys: ['type', 'code', 'message'] },
);
const rejected: fc.Arbitrary<Rejected> = fc.record(
  {
    type: fc.constant('rejected'),
    code: fc.constantFrom('INVALID', 'RATE_LIMITED', 'UNAVAILABLE', 'UNAUTHENTICATED', 'FORBIDDEN'),
    message: text,
    field: text,
    limit: uint,
    retryAfterMs: uint,
  },
  { requiredKeys: ['type', 'code', 'message'] },
);

const identity = fc.record({ account: text, podUid: text });

const ANSWERS: Variants<AnswerBody> = {
  done: fc.record({ type: fc.constant('done') }),
  opened: fc.record({ type: fc.constant('opened'), session: uint }),
  attached: fc.record({
    type: fc.constant('attached'),
    ttlMs: uint,
    grants: fc.array(grant, few),
    waits: fc.array(wait, few),
  }),
  granted: fc.record({ type: fc.constant('granted'), token: uint }),
  queued: fc.record({ type: fc.constant('queued'), position: uint }),
  ended: fc.record({
    type: fc.constant('ended'),
    by: fc.oneof(refusalCode, fc.constantFrom('RELEASED', 'REVOKED')),
    token: uint,
  }),
  refused,
  rejected,
  lock: fc.record({ type: fc.constant('lock'), lock }),
  locks: fc.record({ type: fc.constant('locks'), locks: fc.array(lock, few), more: fc.boolean() }),
  wrongGroup: fc.record({ type: fc.constant('wrongGroup'), mapVersion: uint }),
};

const EVENTS: Variants<LockEvent> = {
  granted: fc.record({
    type: fc.constant('granted'),
    ...ofRequest,
    token: uint,
    mode,
    permits: uint,
    owner: text,
    joined: fc.boolean(),
    fromQueue: fc.boolean(),
    waitedMs: uint,
  }),
  queued: fc.record({
    type: fc.constant('queued'),
    ...ofRequest,
    mode,
    permits: uint,
    position: uint,
    waitUntil: uint,
  }),
  refused: fc.record({
    type: fc.constant('refused'),
    ...ofRequest,
    code: refusalCode,
    fromQueue: fc.boolean(),
  }),
  released: fc.record({
    type: fc.constant('released'),
    ...ofGrant,
    cause: fc.constantFrom('release', 'close'),
    key: text,
    remaining: uint,
  }),
  cancelled: fc.record({ type: fc.constant('cancelled'), ...ofRequest, token: uint, remaining: uint }),
  expired: fc.record({ type: fc.constant('expired'), ...ofGrant, cause: sessionEndCause }),
  revoking: fc.record({ type: fc.constant('revoking'), ...ofGrant, cause: revokeCause, until: uint }),
  revoked: fc.record({ type: fc.constant('revoked'), ...ofGrant, cause: revokeCause, unsafe: fc.boolean() }),
  delayed: fc.record({ type: fc.constant('delayed'), name: text, until: uint }),
  sessionOpened: fc.record({
    type: fc.constant('sessionOpened'),
    session: uint,
    client: text,
    identity,
    ttlMs: uint,
  }),
  sessionEnding: fc.record({ type: fc.constant('sessionEnding'), session: uint, cause: sessionEndCause }),
  sessionEnded: fc.record({ type: fc.constant('sessionEnded'), session: uint }),
  tookOver: fc.record({ type: fc.constant('tookOver'), epoch: uint, token: uint, reason: text }),
  configured: fc.record({ type: fc.constant('configured'), version: uint }),
  broken: fc.record({
    type: fc.constant('broken'),
    ...ofGrant,
    now: fc.boolean(),
    reason: text,
    by: text,
  }),
  quarantined: fc.record({ type: fc.constant('quarantined'), name: text, reason: text }),
  unquarantined: fc.record({ type: fc.constant('unquarantined'), name: text, by: text }),
  fencingRejected: fc.record({ type: fc.constant('fencingRejected'), ...ofGrant, resource: text }),
};

const anyEvent: fc.Arbitrary<LockEvent> = fc.oneof(...Object.values(EVENTS));

const keepaliveRequest: fc.Arbitrary<KeepaliveRequest> = fc.record({
  number: uint,
  sessions: fc.array(fc.record(ofSession), few),
});

const keepaliveStatus: fc.Arbitrary<KeepaliveStatus> = fc.oneof(
  fc.record({
    ...ofSession,
    alive: fc.constant(true as const),
    grants: uint,
    digest: uint32,
    revoking: fc.array(fc.record({ token: uint, cause: revokeCause }), few),
  }),
  fc.record({ ...ofSession, alive: fc.constant(false as const) }),
);

const keepaliveAnswer: fc.Arbitrary<KeepaliveAnswer> = fc.record({
  number: uint,
  sessions: fc.array(keepaliveStatus, few),
});

const mark: fc.Arbitrary<Mark> = fc.record({
  lineage: fc.string({ maxLength: 32 }),
  epoch: uint,
  index: uint,
  hash: fc.string({ maxLength: 64 }),
  seal: fc.string({ maxLength: 64 }),
});

export const anyClientFrame: fc.Arbitrary<ClientFrame> = fc.record(
  {
    format: fc.constant(FORMAT_VERSION),
    requests: fc.array(fc.record({ id: uint, body: fc.oneof(...Object.values(REQUESTS)) }), {
      maxLength: 10,
    }),
    keepalive: keepaliveRequest,
    mark,
  },
  { requiredKeys: ['format', 'requests'] },
);

export const anyServerFrame: fc.Arbitrary<ServerFrame> = fc.record(
  {
    position,
    leading: fc.boolean(),
    answers: fc.array(fc.record({ id: uint, body: fc.oneof(...Object.values(ANSWERS)) }), { maxLength: 10 }),
    notices: fc.array(fc.record({ ...ofSession, event: anyEvent }), { maxLength: 10 }),
    keepalive: keepaliveAnswer,
    mark,
    halted: fc.string({ minLength: 1, maxLength: 200 }),
  },
  { requiredKeys: ['position', 'leading', 'answers', 'notices'] },
);

export const anyHistoryEntry: fc.Arbitrary<HistoryEntry> = fc.record({
  lineage: text,
  epoch: uint,
  index: uint,
  at: uint,
  wallMs: uint,
  eventHash: text,
  events: fc.array(anyEvent, { maxLength: 10 }),
});

const relayRequest = fc.record({
  id: uint,
  body: fc.oneof(
    COMMANDS.openSession,
    COMMANDS.attach,
    COMMANDS.closeSession,
    COMMANDS.acquire,
    COMMANDS.release,
    COMMANDS.cancel,
    COMMANDS.reportStale,
    REQUESTS.getLock,
    REQUESTS.listLocks,
  ),
});

export const anyRelayFrame: fc.Arbitrary<RelayFrame> = fc.record(
  {
    format: fc.constant(FORMAT_VERSION),
    groups: fc.array(
      fc.record(
        {
          client: uint,
          requests: fc.array(relayRequest, few),
          keepalive: keepaliveRequest,
          identity,
          mark,
        },
        { requiredKeys: ['client', 'requests'] },
      ),
      few,
    ),
    closed: fc.array(uint, few),
    reattach: fc.record({
      sessions: fc.array(fc.record({ client: uint, ...ofSession }), few),
      seen: position,
    }),
    allAttached: fc.constant(true),
    applied: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    behaviour: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  },
  { requiredKeys: ['format', 'groups', 'closed'] },
);

export const anyLeaderFrame: fc.Arbitrary<LeaderFrame> = fc.record({
  position,
  groups: fc.array(
    fc.record(
      {
        client: uint,
        answers: fc.array(fc.record({ id: uint, body: fc.oneof(...Object.values(ANSWERS)) }), few),
        notices: fc.array(fc.record({ ...ofSession, event: anyEvent }), few),
        keepalives: fc.array(keepaliveAnswer, few),
        mark,
      },
      { requiredKeys: ['client', 'answers', 'notices', 'keepalives'] },
    ),
    few,
  ),
});
