/** How a front end finds the leader and keeps to it, and when that leader counts as unheard (rules S4, S7). */
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { LeaderFrame, RelayFrame } from '../../api/wire.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { FrontEnd } from './front-end.ts';
import { LeaderLink, type LeaderStreamHandler } from './leader-link.ts';

/** Longer than the longest pause between two looks. */
const LOOK_MS = 100;

interface Dialled {
  readonly serverId: string;
  readonly handler: LeaderStreamHandler;
  readonly sent: RelayFrame[];
  isClosed: boolean;
}

class Bench {
  readonly runtime = new VirtualRuntime();
  readonly store = new MemoryStore('l');
  readonly frontEnd = new FrontEnd(this.runtime, () => namespaceConfig(), { patienceMs: 5_000 });
  readonly dialled: Dialled[] = [];
  /** Streams whose end was told. */
  lost = 0;
  readonly link = new LeaderLink({
    runtime: this.runtime,
    log: new MemoryLog(this.store),
    serverId: 'me',
    frontEnd: this.frontEnd,
    appliedIndex: () => 0,
    onLost: () => void this.lost++,
    dial: (serverId, handler) => {
      if (serverId === 'stranger') return null;
      const dialled: Dialled = { serverId, handler, sent: [], isClosed: false };
      this.dialled.push(dialled);
      const close = (): void => {
        dialled.isClosed = true;
      };
      return { send: (frame) => void dialled.sent.push(frame), close };
    },
  });

  get newest(): Dialled {
    const dialled = this.dialled.at(-1);
    if (dialled === undefined) throw new Error('nobody was dialled');
    return dialled;
  }

  /** `serverId` wins the log; the stream to it, accepted. */
  async on(serverId: string): Promise<Dialled> {
    this.store.campaign(serverId);
    await this.runtime.pass(LOOK_MS);
    this.newest.handler.onFrame(this.ping());
    return this.newest;
  }

  /** A sign of life of the leader in the log. */
  ping(index = 1): LeaderFrame {
    const epoch = this.store.leader()?.epoch ?? 0;
    return { position: { lineage: 'l', epoch, index }, groups: [] };
  }
}

test('it dials whom the log names, and the front end is on it with its first frame', async () => {
  const bench = new Bench();
  await bench.runtime.pass(LOOK_MS);
  expect(bench.dialled).toEqual([]);
  bench.store.campaign('b');
  await bench.runtime.pass(LOOK_MS);
  expect(bench.newest.serverId).toBe('b');
  expect([bench.link.isOnLeader, bench.newest.sent]).toEqual([false, []]);
  bench.newest.handler.onFrame(bench.ping());
  expect(bench.link.isOnLeader).toBe(true);
  expect(bench.newest.sent[0]).toEqual({ format: 1, groups: [], closed: [], allAttached: true });
  await bench.runtime.pass(500);
  expect(bench.dialled).toHaveLength(1);
  bench.link.stop();
});

test('nobody dials itself, nor a server that is no replica of the group', async () => {
  const bench = new Bench();
  bench.store.campaign('me');
  await bench.runtime.pass(1_000);
  bench.store.campaign('stranger');
  await bench.runtime.pass(LOOK_MS);
  expect(bench.dialled).toEqual([]);
  expect(bench.runtime.logged.length).toBeGreaterThan(0);
  bench.link.stop();
});

test('a committed entry of a later epoch ends the stream to the leader before', async () => {
  const bench = new Bench();
  const b = await bench.on('b');
  const { epoch } = bench.store.campaign('c');
  bench.link.sawEpoch(epoch);
  // Whoever relied on hearing it looks for itself from now on.
  expect([b.isClosed, bench.link.isOnLeader, bench.lost]).toEqual([true, false, 1]);
  await bench.runtime.pass(LOOK_MS);
  expect(bench.newest.serverId).toBe('c');
  b.handler.onFrame(bench.ping());
  expect(bench.link.isOnLeader).toBe(false);
  bench.link.stop();
});

test('a sign of life does not count as told: after a break the next leader hears what clients have really seen', async () => {
  const bench = new Bench();
  const client = bench.frontEnd.connect(
    { account: 'a', podUid: '' },
    { onFrame: () => undefined, onClose: () => undefined },
  );
  const b = await bench.on('b');
  const open = {
    type: 'open',
    client: 'c',
    ttlMs: 5_000,
    maxHoldMs: 0,
    secretHash: 'ab'.repeat(32),
  } as const;
  client.send({ format: 1, requests: [{ id: 1, body: open }] });
  const { position } = bench.ping(7);
  const answers = [{ id: 1, body: { type: 'opened', session: 3 } as const }];
  b.handler.onFrame({ position, groups: [{ client: 1, answers, notices: [], keepalives: [] }] });
  client.send({ format: 1, requests: [{ id: 2, body: acquireCommand({ session: 3, key: 'k' }) }] });
  b.handler.onFrame(bench.ping(9));
  b.handler.onClose(false);
  await bench.runtime.pass(LOOK_MS);
  bench.newest.handler.onFrame(bench.ping(12));
  expect(bench.newest.sent[0]?.reattach).toEqual({
    sessions: [{ client: 1, session: 3, attach: 1 }],
    seen: { ...position, index: 7 },
  });
  const handedOn = bench.newest.sent.flatMap(({ groups }) => groups.flatMap(({ requests }) => requests));
  expect(handedOn.map(({ id }) => id)).toEqual([2]);
  bench.link.stop();
});

describe('rule S7: unheard', () => {
  test('is a leader that does not take a stream; one whose stream only breaks is tried again first', async () => {
    const bench = new Bench();
    const b = await bench.on('b');
    b.handler.onClose(false);
    expect([bench.link.isOnLeader, bench.link.isUnheard]).toEqual([false, false]);
    await bench.runtime.pass(LOOK_MS);
    expect(bench.dialled).toHaveLength(2);
    bench.newest.handler.onClose(false);
    expect(bench.link.isUnheard).toBe(true);
    await bench.runtime.pass(LOOK_MS);
    bench.newest.handler.onFrame(bench.ping());
    expect(bench.link.isUnheard).toBe(false);
    bench.link.stop();
  });

  test('is not one that answers that it does not lead yet', async () => {
    const bench = new Bench();
    bench.store.campaign('b');
    await bench.runtime.pass(LOOK_MS);
    bench.newest.handler.onClose(true);
    expect(bench.link.isUnheard).toBe(false);
    bench.link.stop();
  });

  test('is one that is silent for 600 ms; after 2 s it is tried over a new stream', async () => {
    const bench = new Bench();
    const b = await bench.on('b');
    await bench.runtime.pass(550);
    expect(bench.link.isUnheard).toBe(false);
    await bench.runtime.pass(60);
    expect(bench.link.isUnheard).toBe(true);
    b.handler.onFrame(bench.ping());
    expect(bench.link.isUnheard).toBe(false);
    await bench.runtime.pass(2_000 + LOOK_MS);
    expect(b.isClosed).toBe(true);
    await bench.runtime.pass(LOOK_MS);
    expect(bench.dialled).toHaveLength(2);
    bench.link.stop();
  });

  test('is nobody while nobody leads, and a new leader begins anew', async () => {
    const bench = new Bench();
    await bench.on('b');
    bench.newest.handler.onClose(false);
    await bench.runtime.pass(LOOK_MS);
    bench.newest.handler.onClose(false);
    expect(bench.link.isUnheard).toBe(true);
    bench.store.depose();
    await bench.runtime.pass(LOOK_MS);
    expect([bench.link.epoch, bench.link.isUnheard]).toEqual([0, false]);
    bench.store.campaign('c');
    await bench.runtime.pass(LOOK_MS);
    expect(bench.link.isUnheard).toBe(false);
    expect(bench.link.epochAgeMs).toBeLessThan(LOOK_MS);
    bench.link.stop();
  });

  test('is one that does not answer a call at all', async () => {
    const bench = new Bench();
    bench.store.campaign('b');
    await bench.runtime.pass(LOOK_MS);
    await bench.runtime.pass(1_000 + LOOK_MS);
    expect(bench.dialled[0]?.isClosed).toBe(true);
    expect(bench.link.isUnheard).toBe(true);
    bench.link.stop();
  });
});

test('how long ago the log answered says whether this replica knows anything', async () => {
  const bench = new Bench();
  await bench.runtime.pass(1_000);
  expect(bench.link.answerAgeMs).toBeLessThan(LOOK_MS);
  bench.link.stop();
  await bench.runtime.pass(5_000);
  expect(bench.link.answerAgeMs).toBeGreaterThanOrEqual(5_000);
});
