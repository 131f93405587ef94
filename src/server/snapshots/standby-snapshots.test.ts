/** Snapshots in a group: a standby writes them, and the leader when none does (rules L3, L4, L5). */
import { expect, test } from 'vitest';
import { acquireCommand, openCommand, traceOf } from '../../../test/support/core.ts';
import { VirtualGroup, type VirtualServer } from '../../../test/support/virtual/virtual-group.ts';
import type { Command } from '../../api/entry.ts';
import { TrimmedError } from '../../log/port.ts';
import { recover } from './recovery.ts';

const DUE_BYTES = 400_000;
const LOCKS_PER_ROUND = 500;
const LOCKS_PER_SESSION = 100;

class Scene {
  readonly group: VirtualGroup;
  #taken = 0;

  constructor(snapshotDueBytes = DUE_BYTES) {
    this.group = new VirtualGroup({ snapshotDueBytes });
  }

  get snapshots() {
    return this.group.store.snapshots();
  }

  /** Takes so many locks, which stay held. */
  async hold(count = LOCKS_PER_ROUND): Promise<void> {
    const leader = await this.group.led();
    for (let left = count; left > 0; left -= LOCKS_PER_SESSION) {
      const [open] = await this.submit(leader, [openCommand({ ttlMs: 60_000 })]);
      if (open?.type !== 'opened') throw new Error('no session');
      const commands = Array.from({ length: Math.min(left, LOCKS_PER_SESSION) }, () => {
        const key = `k${++this.#taken}`;
        return acquireCommand({ session: open.session, key, name: key, purpose: 'x'.repeat(800) });
      });
      await this.submit(leader, commands);
    }
  }

  submit(leader: VirtualServer, commands: readonly Command[]) {
    const { member } = leader;
    if (member.leader === null) throw new Error('it leads no more');
    return this.group.runtime.until(member.leader.submit(commands), 20_000);
  }

  /** Lets time pass until `isSo`. */
  async until(isSo: () => boolean, limitMs: number): Promise<void> {
    for (let passed = 0; passed < limitMs && !isSo(); passed += 50) await this.group.runtime.pass(50);
    expect(isSo()).toBe(true);
  }

  standbys(): Promise<VirtualServer[]> {
    return this.group.led().then((leader) => this.group.servers.filter((server) => server !== leader));
  }
}

test('a standby writes it, frozen at one index, while the leader goes on; then it follows again', async () => {
  const scene = new Scene();
  await scene.group.led();
  await scene.group.runtime.pass(2_000);
  await scene.hold();
  const { runtime, store } = scene.group;
  await scene.until(() => store.openedSnapshot()?.serverId != null, 3_000);
  const leader = await scene.group.led();
  expect(store.openedSnapshot()?.serverId).not.toBe(leader.name);
  const frozenAt = store.head().index;
  // One chunk at a time: 8 MiB/s are 16 ms for each.
  while (store.openedSnapshot()?.offer === null) {
    await scene.hold(1);
    await runtime.pass(1);
  }
  await scene.until(() => scene.snapshots.length === 1, 2_000);
  const [manifest] = scene.snapshots;
  expect(manifest?.chunkHashes.length).toBeGreaterThan(2);
  expect(manifest?.index).toBeLessThanOrEqual(frozenAt);
  expect(store.head().index).toBeGreaterThan(frozenAt);
  await runtime.pass(1_000);
  const statuses = await runtime.until(
    Promise.all(scene.group.servers.map(({ member }) => member.status())),
    1_000,
  );
  expect(statuses.every(({ lag }) => lag <= 1)).toBe(true);
  expect(scene.group.servers.flatMap(({ halted }) => halted)).toEqual([]);
  const recovered = await runtime.until(recover(leader.log, runtime.logger), 2_000);
  expect(recovered.snapshot).toEqual(manifest);
  expect(traceOf(recovered.state)).toEqual(traceOf(leader.member.leader!.state));
});

test('with two of them the log is trimmed, but not before an attached standby (rule L4)', async () => {
  const scene = new Scene();
  await scene.group.led();
  await scene.group.runtime.pass(2_000);
  const { runtime, store } = scene.group;
  await scene.hold();
  await scene.until(() => scene.snapshots.length === 1, 10_000);
  const [behind] = await scene.standbys();
  const read = behind!.log.read.bind(behind!.log);
  // It stands still, well attached: nothing that it has not read may go.
  behind!.log.read = async function* () {
    yield* [];
  };
  behind!.log.claimSnapshot = () => Promise.resolve(false);
  const { lag, position } = await runtime.until(behind!.member.status(), 1_000);
  expect(lag).toBeLessThan(2);
  await scene.hold(4 * LOCKS_PER_ROUND);
  await scene.until(() => scene.snapshots.length === 2, 10_000);
  await runtime.pass(1_000);
  expect(store.readPage(position.index + 1)[0]?.index).toBe(position.index + 1);
  expect(position.index).toBeLessThan(scene.snapshots[0]!.index);
  behind!.log.read = read;
  const older = scene.snapshots[0]!;
  await scene.hold(16 * LOCKS_PER_ROUND);
  await scene.until(() => scene.snapshots[1]?.id === older.id, 10_000);
  await runtime.pass(1_000);
  expect(() => store.readPage(older.index)).toThrow(TrimmedError);
  expect(store.readPage(older.index + 1)[0]?.index).toBe(older.index + 1);
});

test('standbys that do not get on with it are not waited for: the leader writes it', async () => {
  const scene = new Scene();
  await scene.group.led();
  await scene.group.runtime.pass(2_000);
  for (const { log } of await scene.standbys()) log.claimSnapshot = () => Promise.resolve(false);
  await scene.hold();
  await scene.group.runtime.pass(9_000);
  expect(scene.snapshots).toEqual([]);
  await scene.until(() => scene.snapshots.length === 1, 5_000);
  expect(scene.group.runtime.logged).toContain('snapshot failed; the log keeps growing');
  expect((await scene.group.led()).member.leader?.isLeading).toBe(true);
});

test('one that dies while it writes is replaced by the leader', async () => {
  const scene = new Scene();
  await scene.group.led();
  await scene.group.runtime.pass(2_000);
  const { store } = scene.group;
  const died = new Set<string>();
  for (const { log, name } of await scene.standbys()) {
    const { writeChunk } = log;
    log.writeChunk = async (id, number, chunk) => {
      if (number >= 1) died.add(name);
      if (number >= 1) await new Promise(() => undefined);
      await writeChunk.call(log, id, number, chunk);
    };
  }
  await scene.hold();
  await scene.until(() => died.size === 1, 5_000);
  const forgotten = store.openedSnapshot()?.id;
  await scene.until(() => scene.snapshots.length === 1, 20_000);
  expect(scene.snapshots[0]?.id).not.toBe(forgotten);
});

test('a snapshot for a leader that is deposed meanwhile is never committed (rule L3)', async () => {
  const scene = new Scene();
  const first = await scene.group.led();
  await scene.group.runtime.pass(2_000);
  await scene.hold();
  const { runtime, store } = scene.group;
  await scene.until(() => store.openedSnapshot()?.serverId != null, 3_000);
  const late = store.openedSnapshot()?.id;
  scene.group.kill(first);
  await scene.group.led([first]);
  expect(store.openedSnapshot()?.id).not.toBe(late);
  await runtime.pass(30_000);
  expect(scene.snapshots.some(({ id }) => id === late)).toBe(false);
  expect(scene.group.servers.flatMap(({ halted }) => halted)).toEqual([]);
});

test('one that shows another state than the log says is not taken', async () => {
  const scene = new Scene();
  await scene.group.led();
  await scene.group.runtime.pass(2_000);
  for (const { log } of await scene.standbys()) {
    const { offerSnapshot } = log;
    log.offerSnapshot = (manifest) => offerSnapshot.call(log, { ...manifest, eventHash: 'f'.repeat(64) });
  }
  await scene.hold();
  await scene.until(() => scene.snapshots.length === 1, 20_000);
  expect(scene.snapshots[0]?.eventHash).not.toBe('f'.repeat(64));
  expect(scene.group.runtime.logged).toContain('snapshot failed; the log keeps growing');
});

test('standbys that are not attached do not write into the one that the leader writes itself', async () => {
  const scene = new Scene();
  const leader = await scene.group.led();
  const { runtime } = scene.group;
  await runtime.pass(2_000);
  scene.group.cut(leader);
  await scene.hold(LOCKS_PER_SESSION);
  const after = (ms: number) => new Promise<void>((resolve) => void runtime.timers.after(ms, resolve));
  // The first time they are further on than the leader's state, and find it open before the leader knows that it is.
  const { openSnapshot } = leader.log;
  let opened = 0;
  leader.log.openSnapshot = async (leadership) => {
    const isFirst = ++opened === 1;
    if (isFirst) await after(600);
    const id = await openSnapshot.call(leader.log, leadership);
    if (isFirst) await after(2_500);
    return id;
  };
  leader.member.leader?.demandSnapshot();
  await scene.until(() => scene.snapshots.length === 1, 20_000);
  expect(runtime.logged).not.toContain('snapshot failed; the log keeps growing');
  expect(opened).toBe(2);
  expect((await scene.group.led()).name).toBe(leader.name);
});
