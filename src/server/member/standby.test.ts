/** A replica that follows: it knows what the leader committed, and leads from there (rules S5, C14, L4). */
import { expect, test, vi } from 'vitest';
import { acquireCommand, namespaceConfig, openCommand } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import { encodeEntry } from '../../core/index.ts';
import { seededRandom } from '../../log/log.fixture.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { CorruptLogError } from '../../log/port.ts';
import { Replica } from './replica.ts';
import { Standby } from './standby.ts';

class Group {
  readonly runtime = new VirtualRuntime();
  readonly store = new MemoryStore('test-lineage');
  readonly seen: HistoryEntry[] = [];
  readonly halted: unknown[] = [];

  async leader(snapshotDueBytes?: number): Promise<Replica> {
    const starting = Replica.start({
      runtime: this.runtime,
      log: new MemoryLog(this.store),
      serverId: 'leader',
      config: namespaceConfig(),
      onStopped: () => undefined,
      ...(snapshotDueBytes === undefined ? {} : { snapshotDueBytes }),
    });
    return this.runtime.until(starting, 1_000);
  }

  standby(log = new MemoryLog(this.store), heardForMs = () => 0): Promise<Standby> {
    return Standby.start({
      runtime: this.runtime,
      heardForMs,
      log,
      onEntry: (entry) => void this.seen.push(entry),
      onHalted: (error) => void this.halted.push(error),
    });
  }
}

test('it applies what is committed, in order, and tells of it', async () => {
  const group = new Group();
  const leader = await group.leader();
  const standby = await group.standby();
  const from = standby.index;
  expect(from).toBeGreaterThan(0);
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  await group.runtime.until(leader.submit(acquireCommand({ session: 1, key: 'k' })), 1_000);
  expect(standby.index).toBe(from);
  await group.runtime.pass(200);
  expect(group.seen.map(({ index }) => index)).toEqual([from + 1, from + 2]);
  expect(group.seen.at(-1)?.events).toMatchObject([{ type: 'granted', session: 1 }]);
  expect(standby.state.holds).toBe(1);
  standby.stop();
  await group.runtime.until(leader.stop(), 10_000);
});

test('it says how long nothing has been committed, as far as it has looked (rule S7)', async () => {
  const group = new Group();
  const leader = await group.leader();
  const standby = await group.standby();
  await group.runtime.pass(1_090);
  // The last look began at 1,000: what was committed since is not known.
  expect(standby.silentMs).toBe(1_000);
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  await group.runtime.pass(150);
  expect(standby.silentMs).toBeLessThanOrEqual(150);
  standby.stop();
});

test('while its leader is heard it looks when it is told of an entry, and else only when one is overdue (rule S7)', async () => {
  const group = new Group();
  const leader = await group.leader();
  let heardForMs = 600;
  const log = new MemoryLog(group.store);
  const standby = await group.standby(log, () => heardForMs);
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  standby.heardOf(group.store.head().index);
  await group.runtime.pass(1);
  expect(standby.index).toBe(group.store.head().index);
  const read = vi.spyOn(log, 'read');
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  await group.runtime.pass(250);
  expect(read).not.toHaveBeenCalled();
  await group.runtime.pass(100);
  expect(standby.index).toBe(group.store.head().index);
  heardForMs = 0;
  standby.stop();
  await group.runtime.until(leader.stop(), 10_000);
});

test('a leader that is heard and commits nothing is looked at no more often than one that is not heard', async () => {
  const group = new Group();
  const leader = await group.leader();
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  const log = new MemoryLog(group.store);
  const standby = await group.standby(log, () => 600);
  await group.runtime.pass(3_000);
  const read = vi.spyOn(log, 'read');
  await group.runtime.pass(1_000);
  expect(read.mock.calls.length).toBeGreaterThanOrEqual(9);
  expect(read.mock.calls.length).toBeLessThanOrEqual(10);
  standby.stop();
  await group.runtime.until(leader.stop(), 10_000);
});

test('however often it is told of entries after a silence, it looks for them', async () => {
  const group = new Group();
  const leader = await group.leader();
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  const standby = await group.standby(new MemoryLog(group.store), () => 600);
  await group.runtime.pass(500);
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  for (let ms = 0; ms < 100; ms += 10) {
    standby.heardOf(group.store.head().index);
    await group.runtime.pass(10);
  }
  expect(standby.index).toBe(group.store.head().index);
  expect(standby.state.sessions.size).toBe(2);
  standby.stop();
  await group.runtime.until(leader.stop(), 10_000);
});

test('what it hands over is the whole log, also what no look has seen yet (rule S5)', async () => {
  const group = new Group();
  const leader = await group.leader();
  const standby = await group.standby();
  for (let session = 1; session <= 20; session += 1) {
    await group.runtime.until(leader.submit(openCommand()), 1_000);
  }
  const { state, head } = await group.runtime.until(standby.finish(), 1_000);
  expect(state.sessions.size).toBe(20);
  expect(head).toEqual(group.store.head());
  await group.runtime.pass(1_000);
  expect(standby.index).toBe(head.index);
});

test('overtaken by a trim it goes on from the snapshot (rule L4)', async () => {
  const group = new Group();
  const leader = await group.leader(2_000);
  const standby = await group.standby();
  for (let session = 1; session <= 200; session += 1) {
    await group.runtime.until(leader.submit(openCommand()), 1_000);
  }
  expect(() => group.store.readPage(standby.index + 1)).toThrow('starts above');
  await group.runtime.pass(200);
  expect(standby.index).toBe(group.store.head().index);
  expect(standby.state.sessions.size).toBe(200);
  expect(group.halted).toEqual([]);
});

test('while the log does not answer it waits, and goes on afterwards', async () => {
  const group = new Group();
  const leader = await group.leader();
  const { timers } = group.runtime;
  const log = new MemoryLog(group.store, { timers, random: seededRandom(1), latencyMs: () => 1 });
  const standby = await group.runtime.until(group.standby(log), 1_000);
  log.setOutage(true);
  await group.runtime.until(leader.submit(openCommand()), 1_000);
  await group.runtime.pass(5_000);
  expect(standby.state.sessions.size).toBe(0);
  log.setOutage(false);
  await group.runtime.pass(2_000);
  expect(standby.state.sessions.size).toBe(1);
  expect(group.halted).toEqual([]);
});

test('one that computes other events than its leader halts and says so (rule C14)', async () => {
  const group = new Group();
  const leader = await group.leader();
  const standby = await group.standby();
  await group.runtime.until(leader.stop(), 10_000);
  await group.runtime.pass(200);
  const log = new MemoryLog(group.store);
  const leadership = await log.campaign('liar');
  const previous = group.store.head();
  const { bytes, hash } = encodeEntry({
    format: 1,
    behaviour: standby.state.behaviour,
    lineage: 'test-lineage',
    epoch: leadership.epoch,
    index: previous.index + 1,
    at: standby.state.at,
    wallMs: 0,
    previous: previous.hash,
    commands: [{ type: 'takeOver', epoch: leadership.epoch, unixSeconds: 0, tokenFloor: 0, reason: 'test' }],
    eventHash: 'ab'.repeat(32),
  });
  await log.append(leadership, { index: previous.index + 1, bytes, hash, previous: previous.hash });
  await group.runtime.pass(200);
  expect(group.halted).toHaveLength(1);
  expect(group.halted[0]).toBeInstanceOf(CorruptLogError);
  await group.runtime.pass(1_000);
  expect(group.halted).toHaveLength(1);
});

test('one that is stopped while the log does not answer says nothing of a log that it cannot follow', async () => {
  const group = new Group();
  await group.leader();
  const log = new MemoryLog(group.store, {
    timers: group.runtime.timers,
    random: seededRandom(1),
    latencyMs: () => 1,
  });
  const standby = await group.runtime.until(group.standby(log), 1_000);
  log.setOutage(true);
  // In the middle of a look, whose calls are repeated until somebody closes the log.
  await group.runtime.pass(150);
  standby.stop();
  await log.close();
  await group.runtime.pass(5_000);
  expect(group.halted).toEqual([]);
  expect(group.runtime.logged).toEqual([]);
});
