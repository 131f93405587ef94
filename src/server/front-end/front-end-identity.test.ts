/** What a front end does with what its clients prove: tells the leader, counts limits by it, and takes nothing new on a proof that has ended. */
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { NamespaceConfig } from '../../api/config.ts';
import { bucketOf } from '../../api/names.ts';
import type { AnswerBody, ClientRequestBody, RelayFrame } from '../../api/wire.ts';
import { FrontEnd, type FrontEndOptions } from './front-end.ts';

const POD = { account: 'payments/payout-worker', podUid: 'pod-1' };
const OTHER_POD = { ...POD, podUid: 'pod-2' };
const POSITION = { lineage: 'l', epoch: 1, index: 1 };
const acquire = acquireCommand({ session: 1, key: 'k' });
const open: ClientRequestBody = {
  type: 'open',
  client: 'c',
  ttlMs: 5_000,
  maxHoldMs: 0,
  secretHash: 'ab'.repeat(32),
};
const READS: readonly ClientRequestBody[] = [
  { type: 'getLock', name: 'a' },
  { type: 'listLocks', prefix: '', after: '', limit: 1 },
];
const REPORT: ClientRequestBody = { type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'db' };

function bench(
  options: FrontEndOptions = {},
  operationsPerSecondPerClient = 10,
  consumers: NamespaceConfig['consumers'] = null,
) {
  const runtime = new VirtualRuntime();
  const config = namespaceConfig({ operationsPerSecondPerClient, operationsPerSecond: 1_000, consumers });
  const frontEnd = new FrontEnd(runtime, () => config, options);
  const leader = () => {
    const frames: RelayFrame[] = [];
    frontEnd.setLeader({ position: POSITION, send: (frame) => void frames.push(frame) });
    return frames;
  };
  const client = (identity = POD, provenUntilMs?: number) => {
    const answers: AnswerBody[] = [];
    const onFrame = (frame: { answers: readonly { body: AnswerBody }[] }) =>
      void answers.push(...frame.answers.map(({ body }) => body));
    const stream = frontEnd.connect(identity, { onFrame, onClose: () => undefined }, provenUntilMs);
    let lastId = 0;
    const ask = (...bodies: readonly ClientRequestBody[]) =>
      stream.send({ format: 1, requests: bodies.map((body) => ({ id: ++lastId, body })) });
    return { answers, ask, stream };
  };
  return { runtime, leader, client, hour: runtime.clock.wallMs() + 3_600_000 };
}

const groupsOf = (frames: readonly RelayFrame[]) => frames.flatMap(({ groups }) => groups);

test('each leader is told once who a client is, with the first group it gets of it', () => {
  const { leader, client } = bench({ patienceMs: 5_000 });
  const first = leader();
  const { ask, stream } = client();
  stream.send({ format: 1, requests: [], keepalive: { number: 1, sessions: [] } });
  ask(acquire);
  expect(groupsOf(first).map(({ identity }) => identity)).toEqual([POD, undefined]);
  const second = leader();
  ask(acquire);
  expect(groupsOf(second).map(({ identity }) => identity)).toEqual([POD, undefined]);
});

describe('limits of a proven identity', () => {
  test('count over all of its streams, and a new stream is no fresh burst', () => {
    const { leader, client, hour } = bench();
    const frames = leader();
    const streams = [client(POD, hour), client(POD, hour)];
    for (const { ask } of streams) ask(...Array.from({ length: 8 }, () => acquire));
    streams[0]?.stream.close();
    const late = client(POD, hour);
    late.ask(acquire);
    expect(groupsOf(frames).flatMap(({ requests }) => requests)).toHaveLength(10);
    expect(late.answers).toMatchObject([{ code: 'RATE_LIMITED', limit: 10 }]);
  });

  test('are its own: another pod of the account has its full share', () => {
    const { leader, client, hour } = bench();
    leader();
    client(POD, hour).ask(...Array.from({ length: 10 }, () => acquire));
    const other = client(OTHER_POD, hour);
    other.ask(...Array.from({ length: 10 }, () => acquire));
    expect(other.answers).toEqual([]);
  });

  test('are forgotten once they are full again', async () => {
    const { runtime, leader, client, hour } = bench({}, 5);
    leader();
    const { ask, stream } = client(POD, hour);
    ask(...Array.from({ length: 5 }, () => acquire));
    stream.close();
    await runtime.pass(2_000);
    const again = client(POD, hour);
    again.ask(...Array.from({ length: 5 }, () => acquire));
    expect(again.answers).toEqual([]);
  });
});

test('after the end of its token a stream takes nothing new; what it has can be kept and given back', async () => {
  const { runtime, leader, client } = bench();
  const frames = leader();
  const { ask, answers, stream } = client(POD, runtime.clock.wallMs() + 1_000);
  ask(open, acquire);
  expect(answers).toEqual([]);
  await runtime.pass(1_001);
  const before = groupsOf(frames).length;
  ask(open, acquire, ...READS, REPORT);
  expect(answers.map((body) => body.type === 'rejected' && body.code)).toEqual(
    Array(5).fill('UNAUTHENTICATED'),
  );
  expect(answers[0]).toMatchObject({ message: expect.stringContaining('fresh') });
  expect(groupsOf(frames)).toHaveLength(before);
  ask(
    { type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] },
    { type: 'cancel', session: 1, attach: 1, key: 'k', acks: [] },
    { type: 'attachWithSecret', session: 1, attach: 2, secret: 's' },
    { type: 'closeSession', session: 1, attach: 1, clean: true },
  );
  stream.send({ format: 1, requests: [], keepalive: { number: 1, sessions: [] } });
  expect(answers).toHaveLength(5);
  expect(
    groupsOf(frames)
      .slice(before)
      .map(({ requests }) => requests.length),
  ).toEqual([4, 0]);
});

test('whoever is no consumer sees no locks and reports nothing; what it has can be given back', () => {
  const { leader, client, hour } = bench({}, 10, [{ namespace: 'payments', serviceAccounts: null }]);
  const frames = leader();
  const stranger = client({ ...POD, account: 'elsewhere/worker' }, hour);
  stranger.ask(...READS, REPORT);
  const code = 'FORBIDDEN';
  expect(stranger.answers).toMatchObject([{ code }, { code }, { code }]);
  expect(stranger.answers[0]).toMatchObject({ message: expect.stringContaining('elsewhere/worker is not') });
  expect(groupsOf(frames)).toEqual([]);
  stranger.ask({ type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] });
  const own = client(POD, hour);
  own.ask(...READS, REPORT);
  expect(own.answers).toEqual([]);
  expect(groupsOf(frames).map(({ requests }) => requests.length)).toEqual([1, 3]);
});

test('names of another group are sent there, by the map in force; what is held here is given back here', () => {
  let served = bucketOf('a');
  const { leader, client } = bench({
    shard: () => ({ mapVersion: 7, serves: (bucket) => bucket === served }),
  });
  const frames = leader();
  const { ask, answers } = client();
  ask({ ...acquire, name: 'a', bucket: bucketOf('a') }, { type: 'getLock', name: 'a' });
  expect(answers).toEqual([]);
  served = bucketOf('b');
  ask({ ...acquire, name: 'a', bucket: bucketOf('a') }, { type: 'getLock', name: 'a' });
  expect(answers).toEqual([
    { type: 'wrongGroup', mapVersion: 7 },
    { type: 'wrongGroup', mapVersion: 7 },
  ]);
  ask({ type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] });
  expect(answers).toHaveLength(2);
  expect(groupsOf(frames)).toHaveLength(2);
});
