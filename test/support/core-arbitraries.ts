/** Arbitrary commands and entries for fast-check: every field over its whole range, lengths up to the limits. */

import { MODES, type NamespaceConfig } from '../../src/api/config.ts';
import type { Command, Entry } from '../../src/api/entry.ts';
import {
  BUCKETS,
  CLIENT_BYTES_MAX,
  FORMAT_VERSION,
  KEY_BYTES_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  PURPOSE_BYTES_MAX,
  REASON_BYTES_MAX,
  RESOURCE_BYTES_MAX,
} from '../../src/api/limits.ts';
import { utf8Length } from '../../src/api/text.ts';
import { fc } from './seeded.ts';

/** Well-formed Unicode up to so many bytes: plain, anything at all, and exactly at the limit. */
function text(bytesMax: number): fc.Arbitrary<string> {
  const cut = (value: string): string => {
    let end = value.length;
    while (utf8Length(value.slice(0, end)) > bytesMax || !value.slice(0, end).isWellFormed()) end--;
    return value.slice(0, end);
  };
  return fc.oneof(
    fc.string({ maxLength: 60 }).map(cut),
    fc.string({ unit: 'binary', maxLength: 60 }).map(cut),
    fc.constantFrom('a', 'é', '€', '🔒', '\0').map((one) => cut(one.repeat(bytesMax))),
  );
}

/** Non-negative safe integers, most often near a power of two, where encodings change their length. */
const uint = fc.oneof(
  fc.nat(300),
  fc.maxSafeNat(),
  fc
    .tuple(fc.integer({ min: 0, max: 53 }), fc.integer({ min: -1, max: 1 }))
    .map(([power, offset]) => Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, 2 ** power + offset))),
);
const keys = fc.array(text(KEY_BYTES_MAX), { maxLength: 4 });
const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 64, maxLength: 64 });

const config: fc.Arbitrary<NamespaceConfig> = fc.record({
  namespace: text(63),
  name: text(40),
  safetyClass: fc.constantFrom('Efficiency', 'Correctness'),
  ttlMs: uint,
  ttlMsMin: uint,
  ttlMsMax: uint,
  lockDelayMs: uint,
  maxHoldMs: uint,
  modes: fc.array(fc.constantFrom(...MODES), { maxLength: 3 }),
  maxWaitersPerName: uint,
  maxWaitMs: uint,
  sessions: uint,
  heldLocks: uint,
  waiters: uint,
  operationsPerSecond: uint,
  locksPerClient: uint,
  operationsPerSecondPerClient: uint,
  semaphores: fc.array(fc.record({ pattern: text(NAME_BYTES_MAX), permits: uint }), { maxLength: 3 }),
  consumers: fc.option(
    fc.array(
      fc.record({ namespace: text(63), serviceAccounts: fc.option(fc.array(text(63), { maxLength: 3 })) }),
      { maxLength: 3 },
    ),
  ),
});

const ofSession = { session: uint, attach: uint };
const name = text(NAME_BYTES_MAX);
const reason = text(REASON_BYTES_MAX);

/** One arbitrary for every type of command; the type makes sure that none is forgotten. */
export const COMMANDS: {
  readonly [Type in Command['type']]: fc.Arbitrary<Extract<Command, { type: Type }>>;
} = {
  configure: fc.record({ type: fc.constant('configure'), version: uint, config: fc.option(config) }),
  openSession: fc.record({
    type: fc.constant('openSession'),
    client: text(CLIENT_BYTES_MAX),
    identity: fc.record({ account: text(253), podUid: text(36) }),
    ttlMs: uint,
    maxHoldMs: uint,
    secretHash: hex,
  }),
  attach: fc.record({ type: fc.constant('attach'), ...ofSession, secretHash: hex }),
  closeSession: fc.record({ type: fc.constant('closeSession'), ...ofSession, clean: fc.boolean() }),
  expireSessions: fc.record({
    type: fc.constant('expireSessions'),
    sessions: fc.array(uint, { maxLength: 10 }),
    cause: fc.constantFrom('expired', 'threw'),
  }),
  acquire: fc.record({
    type: fc.constant('acquire'),
    ...ofSession,
    key: text(KEY_BYTES_MAX),
    name,
    mode: fc.constantFrom(...MODES),
    permits: uint,
    reentrant: fc.boolean(),
    owner: text(OWNER_BYTES_MAX),
    purpose: text(PURPOSE_BYTES_MAX),
    waitMs: uint,
    bucket: fc.nat(BUCKETS - 1),
    mapVersion: uint,
    acks: keys,
  }),
  release: fc.record({
    type: fc.constant('release'),
    ...ofSession,
    name,
    token: uint,
    key: text(KEY_BYTES_MAX),
    acks: keys,
  }),
  cancel: fc.record({ type: fc.constant('cancel'), ...ofSession, key: text(KEY_BYTES_MAX), acks: keys }),
  break: fc.record({
    type: fc.constant('break'),
    name,
    token: uint,
    now: fc.boolean(),
    reason,
    by: text(OWNER_BYTES_MAX),
  }),
  takeOver: fc.record({
    type: fc.constant('takeOver'),
    epoch: uint,
    unixSeconds: uint,
    tokenFloor: uint,
    reason,
  }),
  resign: fc.record({ type: fc.constant('resign'), epoch: uint }),
  raiseBehaviour: fc.record({ type: fc.constant('raiseBehaviour'), level: uint }),
  quarantine: fc.record({ type: fc.constant('quarantine'), name, reason }),
  unquarantine: fc.record({ type: fc.constant('unquarantine'), name, by: text(OWNER_BYTES_MAX) }),
  reportStale: fc.record({
    type: fc.constant('reportStale'),
    session: uint,
    name,
    token: uint,
    resource: text(RESOURCE_BYTES_MAX),
  }),
};

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(...Object.values(COMMANDS));

export function anyEntry(commands: fc.Arbitrary<Command[]>): fc.Arbitrary<Entry> {
  return fc.record({
    format: fc.constant(FORMAT_VERSION),
    behaviour: uint,
    lineage: text(64),
    epoch: uint,
    index: uint,
    at: uint,
    wallMs: uint,
    previous: hex,
    commands,
    eventHash: hex,
  });
}
