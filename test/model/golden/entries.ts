/**
 * One entry of every type of command, one list of every type of event, and a short log: what format version 1 was made of
 * when it was fixed. format-1.json beside it holds the bytes and hashes they had then.
 */
import type { Command, Entry, LockEvent } from '../../../src/api/entry.ts';
import { namespaceConfig } from '../../support/core.ts';

const HASH = '0123456789abcdef'.repeat(4);
const NAME = 'merchant/é-🔒';

const COMMANDS: { readonly [Type in Command['type']]: Extract<Command, { type: Type }> } = {
  configure: { type: 'configure', version: 7, config: namespaceConfig({ lockDelayMs: 1_500 }) },
  openSession: {
    type: 'openSession',
    client: 'payout-runner',
    identity: { account: 'payments/payout-worker', podUid: 'b1c2' },
    ttlMs: 15_000,
    maxHoldMs: 3_600_000,
    secretHash: HASH,
  },
  attach: { type: 'attach', session: 300, attach: 2, secretHash: HASH },
  closeSession: { type: 'closeSession', session: 300, attach: 2, clean: true },
  expireSessions: { type: 'expireSessions', sessions: [1, 127, 128, 2 ** 40], cause: 'threw' },
  acquire: {
    type: 'acquire',
    session: 300,
    attach: 2,
    key: 'key-1',
    name: NAME,
    mode: 'semaphore',
    permits: 3,
    reentrant: true,
    owner: 'worker-7',
    purpose: 'nightly payout',
    waitMs: 30_000,
    bucket: 4_095,
    mapVersion: 1,
    acks: ['key-0', 'é'],
  },
  release: {
    type: 'release',
    session: 300,
    attach: 2,
    name: NAME,
    token: 2 ** 53 - 1,
    key: 'key-1',
    acks: ['key-1'],
  },
  cancel: { type: 'cancel', session: 300, attach: 2, key: 'key-1', acks: [] },
  break: { type: 'break', name: NAME, token: 2 ** 45, now: true, reason: 'stuck', by: 'operator' },
  takeOver: {
    type: 'takeOver',
    epoch: 12,
    unixSeconds: 1_800_000_000,
    tokenFloor: 2 ** 50,
    reason: 'the leader was killed',
  },
  resign: { type: 'resign', epoch: 12 },
  raiseBehaviour: { type: 'raiseBehaviour', level: 2 },
  quarantine: { type: 'quarantine', name: NAME, reason: 'it threw' },
  unquarantine: { type: 'unquarantine', name: NAME, by: 'operator' },
  reportStale: { type: 'reportStale', session: 0, name: NAME, token: 9, resource: 'payout_batches' },
};

/** By type of command. */
export const ENTRIES: Readonly<Record<string, Entry>> = Object.fromEntries(
  Object.entries(COMMANDS).map(([type, command]) => [
    type,
    {
      format: 1,
      behaviour: 1,
      lineage: '6f1d',
      epoch: 12,
      index: 2 ** 33,
      at: 86_400_000,
      wallMs: 1_800_000_000_123,
      previous: HASH,
      commands: [command],
      eventHash: HASH,
    },
  ]),
);

const REQUEST = { name: NAME, session: 300, key: 'key-1' } as const;
const GRANT = { name: NAME, session: 300, token: 2 ** 45 } as const;
const MODE = { mode: 'exclusive', permits: 1 } as const;

/** By type of event. */
export const EVENTS: { readonly [Type in LockEvent['type']]: Extract<LockEvent, { type: Type }> } = {
  granted: {
    type: 'granted',
    ...REQUEST,
    ...MODE,
    token: 2 ** 45,
    owner: 'worker-7',
    joined: true,
    fromQueue: true,
    waitedMs: 12,
  },
  queued: { type: 'queued', ...REQUEST, ...MODE, position: 3, waitUntil: 90_000 },
  refused: { type: 'refused', ...REQUEST, code: 'WAIT_TIMEOUT', fromQueue: true },
  released: { type: 'released', ...GRANT, cause: 'release', key: 'key-1', remaining: 2 },
  cancelled: { type: 'cancelled', ...REQUEST, token: 2 ** 45, remaining: 63 },
  expired: { type: 'expired', ...GRANT, cause: 'stream' },
  revoking: { type: 'revoking', ...GRANT, cause: 'maxHold', until: 90_000 },
  revoked: { type: 'revoked', ...GRANT, cause: 'break', unsafe: true },
  delayed: { type: 'delayed', name: NAME, until: 90_000 },
  sessionOpened: {
    type: 'sessionOpened',
    session: 300,
    client: 'payout-runner',
    identity: { account: 'payments/payout-worker', podUid: 'b1c2' },
    ttlMs: 15_000,
  },
  sessionEnding: { type: 'sessionEnding', session: 300, cause: 'expired' },
  sessionEnded: { type: 'sessionEnded', session: 300 },
  tookOver: { type: 'tookOver', epoch: 12, token: 2 ** 50, reason: 'the leader was killed' },
  configured: { type: 'configured', version: 7 },
  broken: { type: 'broken', ...GRANT, now: false, reason: 'stuck', by: 'operator' },
  quarantined: { type: 'quarantined', name: NAME, reason: 'it threw' },
  unquarantined: { type: 'unquarantined', name: NAME, by: 'operator' },
  fencingRejected: { type: 'fencingRejected', ...GRANT, resource: 'payout_batches' },
};

/** Names whose buckets are part of the protocol. */
export const NAMES = ['a', 'b', 'merchant-48213', NAME, ' ', '\0', 'é', 'e\u0301', 'x'.repeat(512)];
