/** A session belongs to its identity and to the stream that attached it (rule C7): what a thief can do with stolen numbers, and with more. */
import { beforeEach, describe, expect, test } from 'vitest';
import { acquireCommand } from '../../../test/support/core.ts';
import {
  attachCommand,
  closeCommand,
  type FrontEndStub,
  LeaderBench,
} from '../../../test/support/virtual/leader-bench.ts';
import type { ClientCommand } from '../../api/entry.ts';

const OWNER = { account: 'payments/payout-worker', podUid: 'pod-1' };
/** Another pod of the same account. */
const SIBLING = { account: 'payments/payout-worker', podUid: 'pod-2' };
const EXPIRED = { type: 'refused', code: 'SESSION_EXPIRED' };
const SUPERSEDED = { type: 'refused', code: 'SUPERSEDED' };
const TTL_MS = 5_000;

let bench: LeaderBench;
let front: FrontEndStub;
let session: number;
let token: number;

beforeEach(async () => {
  bench = await LeaderBench.start();
  front = bench.frontEnd();
  front.introduce(1, OWNER);
  front.introduce(2, SIBLING);
  front.introduce(3, OWNER);
  session = await front.open(1, { identity: OWNER, ttlMs: TTL_MS });
  const granted = await front.acquire(1, { session, key: 'k', name: 'a' });
  if (granted.type !== 'granted') throw new Error('not granted');
  token = granted.token;
});

function stolen(): readonly ClientCommand[] {
  return [
    acquireCommand({ session, key: 'other', name: 'b' }),
    { type: 'release', session, attach: 1, name: 'a', token, key: '', acks: [] },
    { type: 'cancel', session, attach: 1, key: 'k', acks: ['k'] },
    closeCommand(session),
  ];
}

/** The owner has what it had, and goes on. */
async function expectUntouched(): Promise<void> {
  expect(bench.leader.state.sessions.get(session)).toMatchObject({
    attach: 1,
    ending: null,
    identity: OWNER,
  });
  expect(bench.leader.state.locks.has('b')).toBe(false);
  const release = { type: 'release', session, attach: 1, name: 'a', token, key: '', acks: [] } as const;
  expect(await front.get(1, release)).toMatchObject({ type: 'done' });
}

describe('another pod of the same account', () => {
  test('with session id, attach number, token and key can do nothing, and learns nothing', async () => {
    for (const command of stolen()) {
      expect(await front.get(2, command)).toMatchObject(EXPIRED);
      const unknown = { ...command, session: 77 } as ClientCommand;
      expect(await front.get(2, unknown)).toEqual(await front.get(2, command));
    }
    await expectUntouched();
  });

  test('with the secret as well it cannot attach', async () => {
    expect(await front.get(2, attachCommand(session, 2))).toMatchObject(EXPIRED);
    await expectUntouched();
  });

  test('its attach and its keepalives keep nobody alive', async () => {
    for (let at = 0; at < 12; at++) {
      front.keepalive(2, at + 1, [session, 1]);
      await front.get(2, attachCommand(session, 2 + at));
      await bench.runtime.pass(TTL_MS / 5);
    }
    expect(bench.events).toContainEqual({ type: 'sessionEnding', session, cause: 'expired' });
  });

  test('a number that is given to a session only later is of no use either', async () => {
    const next = session + 1;
    const ids = front.ask(1, { ...openOf(), ttlMs: TTL_MS });
    const [close] = front.ask(2, closeCommand(next));
    await bench.runtime.pass(1);
    expect(front.answerTo(ids[0])).toMatchObject({ type: 'opened', session: next });
    expect(front.answerTo(close)).toMatchObject(EXPIRED);
    expect(bench.leader.state.sessions.get(next)).toMatchObject({ ending: null });
  });

  test('a report of a stale token in the name of another session counts for nobody', async () => {
    const report = { type: 'reportStale', session, name: 'a', token, resource: 'db' } as const;
    expect(await front.get(2, report)).toMatchObject({ type: 'done' });
    expect(bench.events).toContainEqual({
      type: 'fencingRejected',
      name: 'a',
      session: 0,
      token,
      resource: 'db',
    });
  });
});

describe('another stream of the same identity', () => {
  test('acts for no session that it has not attached: it is told to attach, which takes the secret', async () => {
    for (const command of stolen()) expect(await front.get(3, command)).toMatchObject(SUPERSEDED);
    const guess = { ...attachCommand(session, 2), secretHash: 'cd'.repeat(32) };
    expect(await front.get(3, guess)).toMatchObject(EXPIRED);
    await expectUntouched();
  });

  test('with the secret it takes the session over, and the old stream acts for it no more', async () => {
    expect(await front.get(3, attachCommand(session, 2))).toMatchObject({ type: 'attached' });
    expect(await front.get(1, closeCommand(session))).toMatchObject(SUPERSEDED);
    expect(await front.get(3, closeCommand(session, { attach: 2 }))).toMatchObject({ type: 'done' });
  });
});

test('a stream of which the front end has not said who it is acts for nobody', async () => {
  const requests = [{ id: 900, body: closeCommand(session) }];
  bench.leader.receive(front, { format: 1, groups: [{ client: 9, requests }], closed: [] });
  await bench.runtime.pass(1);
  expect(front.answerTo(900)).toMatchObject(EXPIRED);
  await expectUntouched();
});

test('a stream keeps its identity for life', () => {
  expect(() =>
    bench.leader.receive(front, {
      format: 1,
      groups: [{ client: 1, requests: [], identity: SIBLING }],
      closed: [],
    }),
  ).toThrow(/one identity/);
});

function openOf() {
  const secretHash = 'ab'.repeat(32);
  return {
    type: 'openSession',
    client: 'c',
    identity: OWNER,
    ttlMs: TTL_MS,
    maxHoldMs: 0,
    secretHash,
  } as const;
}
