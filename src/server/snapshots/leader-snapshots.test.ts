/** Snapshots: due, written, trimmed, and what a replica makes of them when it starts anew (rules L3, L4, L5). */
import { describe, expect, test } from 'vitest';
import { acquireCommand, TTL_MS, traceOf } from '../../../test/support/core.ts';
import { type FrontEndStub, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { TrimmedError } from '../../log/port.ts';
import { history, recover } from './recovery.ts';

const DUE_BYTES = 20_000;

/** Takes and gives back locks until about so many bytes are in the log. */
async function work(bench: LeaderBench, front: FrontEndStub, session: number, bytes: number): Promise<void> {
  const before = bench.log.sent.reduce((sum, entry) => sum + entry.bytes.length, 0);
  let last = '';
  for (let i = 0; ; i++) {
    const sent = bench.log.sent.reduce((sum, entry) => sum + entry.bytes.length, 0);
    if (sent - before >= bytes) return;
    const key = `${bench.runtime.nowMs}-${i}`;
    const purpose = 'x'.repeat(200);
    const answer = await front.acquire(1, {
      session,
      key,
      name: `n${i % 7}`,
      purpose,
      acks: last === '' ? [] : [last],
    });
    last = key;
    if (answer.type !== 'granted') continue;
    const token = answer.token;
    await front.get(1, { type: 'release', session, attach: 1, name: `n${i % 7}`, token, key: '', acks: [] });
  }
}

async function started() {
  const bench = await LeaderBench.start({ snapshotDueBytes: DUE_BYTES });
  const front = bench.frontEnd();
  const session = await front.open(1, { ttlMs: 60_000 });
  await front.acquire(1, { session, key: 'kept', name: 'kept' });
  return { bench, front, session };
}

describe('rule L5: a snapshot is due when the log has grown enough', () => {
  test('then it is written once, and the next one after as much again', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, DUE_BYTES - 2_000);
    expect(bench.log.calls.snapshots).toBe(0);
    await work(bench, front, session, 2_500);
    expect(bench.log.calls.snapshots).toBe(1);
    expect(await bench.log.snapshots()).toHaveLength(1);
    await work(bench, front, session, DUE_BYTES - 2_500);
    expect(bench.log.calls.snapshots).toBe(1);
    await work(bench, front, session, 3_000);
    expect(bench.log.calls.snapshots).toBe(2);
    expect(bench.leader.sizes.logBytes).toBeLessThan(3_000);
  });

  test('what was appended while it was written counts towards the next one', async () => {
    const { bench, front, session } = await started();
    let isWritten = (): void => undefined;
    const written = new Promise<void>((resolve) => {
      isWritten = resolve;
    });
    const { writeChunk } = bench.log;
    bench.log.writeChunk = async (...args) => {
      await written;
      await writeChunk.call(bench.log, ...args);
    };
    await work(bench, front, session, DUE_BYTES + 100);
    expect(bench.log.calls.snapshots).toBe(1);
    await work(bench, front, session, 7_000);
    isWritten();
    await bench.runtime.pass(1);
    expect(await bench.log.snapshots()).toHaveLength(1);
    expect(bench.leader.sizes.logBytes).toBeGreaterThanOrEqual(7_000);
  });

  test('a restart does not make one due: what the last one covers does not count', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, 2 * DUE_BYTES + 2_000);
    expect(await bench.log.snapshots()).toHaveLength(2);
    const { sizes } = bench.leader;
    for (let i = 0; i < 3; i++) {
      await bench.lead({ snapshotDueBytes: DUE_BYTES });
      await bench.runtime.pass(1);
      expect(bench.log.calls.snapshots).toBe(0);
      expect(bench.leader.sizes.logBytes).toBeLessThan(sizes.logBytes + 1_000);
      expect(bench.leader.sizes.snapshotBytes).toBe(sizes.snapshotBytes);
    }
  });

  test('one that cannot be written is not tried again at every entry, and work goes on', async () => {
    const { bench, front, session } = await started();
    bench.log.areSnapshotsOut = true;
    await work(bench, front, session, 2 * DUE_BYTES);
    expect(bench.log.calls.snapshots).toBeGreaterThan(0);
    expect(bench.log.calls.snapshots).toBeLessThan(12);
    expect(bench.runtime.logged).toContain('snapshot failed; the log keeps growing');
    bench.log.areSnapshotsOut = false;
    await work(bench, front, session, DUE_BYTES);
    expect(await bench.log.snapshots()).toHaveLength(1);
    expect(bench.stopped).toEqual([]);
  });
});

describe('a leader that stood still while it wrote one, and leads no more', () => {
  test.each(['writeChunk', 'commitSnapshot'] as const)(
    'at %s: it does not speak of a failure',
    async (call) => {
      const { bench, front, session } = await started();
      const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
      const { [call]: goOn } = bench.log as Record<typeof call, (...args: unknown[]) => Promise<void>>;
      let isReached = false;
      Object.assign(bench.log, {
        [call]: async (...args: unknown[]) => {
          isReached = true;
          await woken;
          await goOn.apply(bench.log, args);
        },
      });
      await work(bench, front, session, DUE_BYTES + 100);
      expect(isReached).toBe(true);
      bench.store.campaign('successor');
      wake();
      await bench.runtime.pass(1);
      expect(bench.runtime.logged).toEqual([]);
      expect(await bench.log.snapshots()).toEqual([]);
    },
  );
});

describe('rules L3, L4: two are kept, and the log before the older one goes', () => {
  test('trimmed only once there are two; reading below the start is refused', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, DUE_BYTES + 500);
    const first = bench.log.read(1)[Symbol.asyncIterator]();
    expect((await first.next()).value?.index).toBe(1);
    await work(bench, front, session, 2 * DUE_BYTES + 1_000);
    const kept = await bench.log.snapshots();
    expect(kept).toHaveLength(2);
    await expect(bench.log.read(1)[Symbol.asyncIterator]().next()).rejects.toThrow(TrimmedError);
    const above = bench.log.read((kept[1]?.index ?? 0) + 1)[Symbol.asyncIterator]();
    expect((await above.next()).value?.index).toBe((kept[1]?.index ?? 0) + 1);
    const indexes: number[] = [];
    for await (const { index } of history(bench.log, (kept[1]?.index ?? 0) + 1)) indexes.push(index);
    expect(indexes.at(-1)).toBe(bench.leader.position.index);
  });

  test('a replica that starts anew has the same state from the newest snapshot and the log above it', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, 2 * DUE_BYTES + 5_000);
    const before = traceOf(bench.leader.state);
    const { state, snapshot, head } = await recover(bench.log, bench.runtime.logger);
    expect(snapshot?.index).toBe((await bench.log.snapshots())[0]?.index);
    expect(traceOf(state)).toEqual(before);
    expect(head.index).toBe(bench.leader.position.index);
    await bench.lead({ snapshotDueBytes: DUE_BYTES });
    const next = bench.frontEnd();
    expect(await next.get(1, { type: 'getLock', name: 'kept' })).toMatchObject({
      lock: { holders: [{ session }] },
    });
    await bench.runtime.pass(60_000 + 500);
    expect(bench.events).toContainEqual({ type: 'sessionEnding', session, cause: 'expired' });
  });

  test('a corrupted newest one is skipped for the older; nothing is lost', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, 2 * DUE_BYTES + 5_000);
    const before = traceOf(bench.leader.state);
    const [newest, older] = await bench.log.snapshots();
    bench.log.corrupt.add(newest?.id ?? '');
    const { state, snapshot } = await recover(bench.log, bench.runtime.logger);
    expect(snapshot?.id).toBe(older?.id);
    expect(traceOf(state)).toEqual(before);
    expect(bench.runtime.logged).toContain('snapshot unusable');
    // History above the bad one can be made from the older one too.
    const indexes: number[] = [];
    for await (const { index } of history(bench.log, (newest?.index ?? 0) + 1)) indexes.push(index);
    expect(indexes[0]).toBe((newest?.index ?? 0) + 1);
  });

  test('with both corrupted and the log trimmed it refuses to start, and says where the log begins', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, 2 * DUE_BYTES + 5_000);
    for (const { id } of await bench.log.snapshots()) bench.log.corrupt.add(id);
    await expect(recover(bench.log, bench.runtime.logger)).rejects.toThrow('the log starts above index');
  });

  test('a snapshot of another log, or of another place, is not believed', async () => {
    const { bench, front, session } = await started();
    await work(bench, front, session, DUE_BYTES + 500);
    const [manifest] = await bench.log.snapshots();
    if (manifest === undefined) throw new Error('no snapshot');
    const log = new MemoryLog(bench.store);
    const lying = Object.assign(Object.create(log), {
      lineage: log.lineage,
      read: (from: number) => log.read(from),
      readChunk: (_: unknown, chunk: number) => log.readChunk(manifest, chunk),
      snapshots: () => Promise.resolve([{ ...manifest, index: manifest.index + 1 }]),
    });
    const { snapshot, state } = await recover(lying, bench.runtime.logger);
    expect(snapshot).toBeNull();
    expect(traceOf(state)).toEqual(traceOf(bench.leader.state));
  });

  test('a deposed leader writes none', async () => {
    const { bench, front, session } = await started();
    const old = { leader: bench.leader, log: bench.log };
    await work(bench, front, session, DUE_BYTES - 3_000);
    await bench.lead({ snapshotDueBytes: DUE_BYTES });
    old.leader.receive(front, {
      format: 1,
      groups: [
        {
          client: 1,
          requests: [{ id: 9_999, body: acquireCommand({ session, key: 'z', purpose: 'x'.repeat(1_000) }) }],
        },
      ],
      closed: [],
    });
    await bench.runtime.pass(TTL_MS);
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(old.log.calls.snapshots).toBe(0);
    expect(await bench.log.snapshots()).toEqual([]);
  });
});
