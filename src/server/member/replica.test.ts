/** One lock server as the program around it sees it: started, configured, stopped, deposed (rules C11, S7, S11). */
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig, TTL_MS } from '../../../test/support/core.ts';
import { HeldLog } from '../../../test/support/virtual/held-log.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import type { AnswerBody, ClientRequestBody, ServerFrame } from '../../api/wire.ts';
import { sha256 } from '../../core/index.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import type { StopReason } from '../leader/leader-options.ts';
import { Replica } from './replica.ts';

const IDENTITY = { account: 'dev/developer', podUid: '' };
const SECRET = 'secret';

class Bench {
  readonly runtime = new VirtualRuntime();
  readonly store = new MemoryStore('test-lineage');
  readonly stopped: StopReason[] = [];
  readonly committed: HistoryEntry[] = [];
  log = new HeldLog(this.store);

  async start(config: NamespaceConfig | null = namespaceConfig()): Promise<Replica> {
    this.log = new HeldLog(this.store);
    const starting = Replica.start({
      runtime: this.runtime,
      log: this.log,
      serverId: 'test',
      config,
      onCommitted: (entry) => void this.committed.push(entry),
      onStopped: (reason) => void this.stopped.push(reason),
    });
    return this.runtime.until(starting, 1_000);
  }
}

class Client {
  readonly frames: ServerFrame[] = [];
  isClosed = false;
  #lastId = 0;
  readonly #runtime: VirtualRuntime;
  readonly #stream: ReturnType<Replica['frontEnd']['connect']>;

  constructor(runtime: VirtualRuntime, replica: Replica) {
    this.#runtime = runtime;
    this.#stream = replica.frontEnd.connect(IDENTITY, {
      onFrame: (frame) => void this.frames.push(frame),
      onClose: () => {
        this.isClosed = true;
      },
    });
  }

  ask(body: ClientRequestBody): number {
    this.#stream.send({ format: 1, requests: [{ id: ++this.#lastId, body }] });
    return this.#lastId;
  }

  answerTo(id: number): AnswerBody | undefined {
    return this.frames.flatMap(({ answers }) => answers).find((answer) => answer.id === id)?.body;
  }

  async get(body: ClientRequestBody): Promise<AnswerBody | undefined> {
    const id = this.ask(body);
    await this.#runtime.pass(1);
    return this.answerTo(id);
  }

  async open(): Promise<number> {
    const answer = await this.get({
      type: 'open',
      client: 'c',
      ttlMs: TTL_MS,
      maxHoldMs: 0,
      secretHash: sha256(SECRET),
    });
    return answer?.type === 'opened' ? answer.session : Number.NaN;
  }
}

describe('rule C11: the configuration', () => {
  test('is brought into force once, and again only when it differs', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    expect(replica.status()).toMatchObject({ configVersion: 1, config: namespaceConfig(), leading: true });
    expect(await replica.configure(namespaceConfig())).toBe(false);
    expect(await bench.runtime.until(replica.configure(namespaceConfig({ sessions: 7 })), 100)).toBe(true);
    expect(replica.status()).toMatchObject({ configVersion: 2, config: { sessions: 7 } });
    await bench.runtime.until(replica.stop(), 100);
    const again = await bench.start(namespaceConfig({ sessions: 7 }));
    expect(again.status().configVersion).toBe(2);
  });

  test('changes that follow each other closely all come into force, in order', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const changes = [1, 2, 3].map((sessions) => replica.configure(namespaceConfig({ sessions })));
    expect(await bench.runtime.until(Promise.all(changes), 1_000)).toEqual([true, true, true]);
    expect(replica.status()).toMatchObject({ configVersion: 4, config: { sessions: 3 } });
  });

  test('none at all revokes what is held and grants nothing; a later one does again', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const client = new Client(bench.runtime, replica);
    const session = await client.open();
    await client.get(acquireCommand({ session, key: 'k' }));
    await bench.runtime.until(replica.configure(null), 100);
    const notices = client.frames.flatMap((frame) => frame.notices).map(({ event }) => event);
    expect(notices).toMatchObject([{ type: 'revoking', cause: 'namespaceDeleted' }]);
    expect(await client.get(acquireCommand({ session, key: 'l', name: 'b' }))).toMatchObject({
      code: 'NAMESPACE_NOT_FOUND',
    });
    expect(replica.status()).toMatchObject({ config: null, configVersion: 2 });
    await bench.runtime.until(replica.configure(namespaceConfig()), 100);
    expect(await client.get(acquireCommand({ session, key: 'm', name: 'b' }))).toMatchObject({
      type: 'granted',
    });
  });

  test('a start without one serves reads and refuses the rest', async () => {
    const bench = new Bench();
    const replica = await bench.start(null);
    const client = new Client(bench.runtime, replica);
    expect(
      await client.get({
        type: 'open',
        client: 'c',
        ttlMs: TTL_MS,
        maxHoldMs: 0,
        secretHash: sha256(SECRET),
      }),
    ).toMatchObject({ code: 'NAMESPACE_NOT_FOUND' });
    expect(await client.get({ type: 'getLock', name: 'a' })).toMatchObject({ type: 'lock' });
  });

  test('one that could not be brought into force is told to the caller', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const { log } = bench;
    log.hold();
    const outcome = replica
      .configure(namespaceConfig({ sessions: 3 }))
      .catch((error: Error) => error.message);
    await bench.runtime.pass(1);
    const next = await bench.start();
    log.letGo();
    expect(await bench.runtime.until(outcome, 100)).toContain('stopped leading');
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(next.status().config).toEqual(namespaceConfig());
  });
});

describe('an orderly stop', () => {
  test('finishes what is in flight, says so in the log, resigns, closes streams and log', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const client = new Client(bench.runtime, replica);
    const session = await client.open();
    bench.log.hold();
    const acquired = client.ask(acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    const later = client.ask(acquireCommand({ session, key: 'l', name: 'b' }));
    const stopping = replica.stop();
    await bench.runtime.pass(10);
    expect(client.isClosed).toBe(false);
    bench.log.letGo();
    await bench.runtime.until(stopping, 100);
    expect(client.answerTo(acquired)).toMatchObject({ type: 'granted' });
    expect(client.answerTo(later)).toMatchObject({ type: 'granted' });
    expect(client.isClosed).toBe(true);
    const commands = bench.log.entries.flatMap((entry) => entry.commands);
    expect(commands.at(-1)).toEqual({ type: 'resign', epoch: 1 });
    expect(bench.log.calls).toMatchObject({ resigns: 1, closes: 1 });
    expect(bench.stopped).toEqual([]);
    expect(replica.status().leading).toBe(false);
    const again = await bench.start();
    expect(again.status()).toMatchObject({ held: 2, position: { epoch: 2 } });
  });

  test('asked for twice is done once, and both are told', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    bench.log.hold();
    const inFlight = replica.submit({ type: 'unquarantine', name: 'x', by: 'me' });
    await bench.runtime.pass(1);
    const both = Promise.all([replica.stop(), replica.stop(), inFlight]);
    await bench.runtime.pass(1);
    bench.log.letGo();
    await bench.runtime.until(both, 1_000);
    expect(bench.log.calls.resigns).toBe(1);
  });

  test('who asks for something while it stops is answered or refused, never left waiting', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    bench.log.hold();
    const stopping = replica.stop();
    await bench.runtime.pass(1);
    const outcomes = [
      replica.read({ type: 'getLock', name: 'a' }),
      replica.submit({ type: 'unquarantine', name: 'x', by: 'me' }),
      replica.configure(namespaceConfig({ sessions: 3 })),
    ].map((asked) =>
      asked.then(
        () => 'answered',
        (error: Error) => error.message,
      ),
    );
    bench.log.letGo();
    await bench.runtime.until(stopping, 100);
    const settled = await bench.runtime.until(Promise.all(outcomes), 100);
    for (const outcome of settled) expect(outcome).toContain('stopped leading');
    await expect(replica.read({ type: 'getLock', name: 'a' })).rejects.toThrow('does not lead');
  });

  test('comes to an end although nothing can be committed, and lets go of the log', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const client = new Client(bench.runtime, replica);
    const session = await client.open();
    bench.log.isOut = true;
    client.ask(acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    const startedMs = bench.runtime.nowMs;
    await bench.runtime.until(replica.stop(), 10_000);
    expect(bench.runtime.nowMs - startedMs).toBeLessThanOrEqual(5_000);
    expect(bench.log.calls.closes).toBe(1);
    expect(client.isClosed).toBe(true);
    const sent = bench.log.sent.length;
    await bench.runtime.pass(10_000);
    expect(bench.log.sent.length - sent).toBeLessThanOrEqual(1);
    expect(bench.stopped).toEqual([]);
  });

  test('leaves no timer behind', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const client = new Client(bench.runtime, replica);
    await client.open();
    await bench.runtime.until(replica.stop(), 100);
    await bench.runtime.pass(5_000);
    const { steps } = bench.runtime;
    await bench.runtime.pass(60_000);
    // The one step is the end of the pause itself.
    expect(bench.runtime.steps - steps).toBe(1);
  });
});

describe('a deposed replica', () => {
  test('stops by itself: clients are told UNAVAILABLE, the program is told why, stop still works', async () => {
    const bench = new Bench();
    const old = await bench.start();
    const log = bench.log;
    const client = new Client(bench.runtime, old);
    const session = await client.open();
    await bench.start();
    const lost = client.ask(acquireCommand({ session, key: 'k' }));
    await bench.runtime.pass(1);
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(client.answerTo(lost)).toBeUndefined();
    expect(await client.get({ type: 'getLock', name: 'a' })).toMatchObject({ code: 'UNAVAILABLE' });
    expect(client.frames.at(-1)?.leading).toBe(false);
    expect(old.status().leading).toBe(false);
    await bench.runtime.until(old.stop(), 100);
    expect(log.calls.closes).toBe(1);
    expect(client.isClosed).toBe(true);
  });

  test('in the middle of its stop: the stop comes to its end all the same', async () => {
    const bench = new Bench();
    const old = await bench.start();
    const log = bench.log;
    log.hold();
    const stopping = old.stop();
    await bench.runtime.pass(1);
    await bench.start();
    log.letGo();
    await bench.runtime.until(stopping, 100);
    expect(log.calls).toMatchObject({ resigns: 0, closes: 1 });
  });
});

describe('looking at it', () => {
  test('whoever watches is told of every commit until they stop', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const seen: number[] = [];
    const unwatch = replica.watch(({ index }) => void seen.push(index));
    await bench.runtime.until(replica.read({ type: 'getLock', name: 'a' }), 100);
    const { index } = replica.status().position;
    unwatch();
    await bench.runtime.until(replica.read({ type: 'getLock', name: 'a' }), 100);
    expect(seen).toEqual([index]);
    expect(replica.status().position.index).toBe(index + 1);
  });

  test('a watcher that throws costs neither the leader nor the other watchers', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const seen: number[] = [];
    replica.watch(() => {
      throw new Error('reader gone');
    });
    replica.watch(({ index }) => void seen.push(index));
    await bench.runtime.until(replica.read({ type: 'getLock', name: 'a' }), 100);
    await bench.runtime.until(replica.read({ type: 'getLock', name: 'a' }), 100);
    expect(seen).toHaveLength(2);
    expect(bench.stopped).toEqual([]);
  });

  test('gauges count what is there', async () => {
    const bench = new Bench();
    const replica = await bench.start();
    const client = new Client(bench.runtime, replica);
    const session = await client.open();
    await client.get(acquireCommand({ session, key: 'a' }));
    for (const key of ['b', 'c']) await client.get(acquireCommand({ session, key, waitMs: 1_000 }));
    expect(replica.gauges()).toMatchObject({
      sessions: 1,
      heldLocks: 1,
      waiters: 2,
      longestQueue: 2,
      snapshotBytes: 0,
    });
    expect(replica.gauges().logBytes).toBeGreaterThan(100);
    expect(replica.status()).toMatchObject({ sessions: 1, held: 1, waiting: 2, names: 1, clients: 1 });
    const indexes: number[] = [];
    for await (const { index } of replica.history(1)) indexes.push(index);
    expect(indexes).toEqual(Array.from({ length: replica.status().position.index }, (_, i) => i + 1));
    expect(bench.committed.map(({ index }) => index)).toEqual(indexes);
  });
});
