/** The exporter over a log in memory: what reaches the sink, whatever happens to sink, log and leadership. */
import { afterEach, expect, test } from 'vitest';
import { acquireCommand, openCommand } from '../../../test/support/core.ts';
import { leadAlone } from '../../../test/support/lone-leader.ts';
import { LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { CorruptLogError, TrimmedError } from '../../log/port.ts';
import { silentAuditMetrics } from '../../platform/metrics.fixture.ts';
import type { Timers } from '../../platform/runtime.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import type { Leader } from '../leader/leader.ts';
import { history } from '../snapshots/recovery.ts';
import { AuditExporter } from './exporter.ts';
import type { AuditBatch } from './records.ts';
import { type AuditSink, BusySinkError } from './sink.ts';

const runtime = createSystemRuntime({ logLevel: 'silent' });
const GROUP = 'test/jobs';

class TestSink implements AuditSink {
  readonly kind = 'file';
  readonly batches: AuditBatch[] = [];
  failing = false;
  tries = 0;

  async write(batch: AuditBatch): Promise<void> {
    this.tries++;
    if (this.failing) throw new Error('the sink is away');
    this.batches.push(batch);
  }

  async close(): Promise<void> {
    // Nothing to close.
  }

  get lines(): unknown[] {
    return this.batches.flatMap(({ lines }) => lines.map((line) => JSON.parse(line) as unknown));
  }

  /** Indexes of entries, in the order of arrival. */
  get indexes(): number[] {
    return this.lines.flatMap((line) => (line as { index?: number }).index ?? []);
  }
}

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function lead(store: MemoryStore, snapshotDueBytes = Number.MAX_SAFE_INTEGER): Promise<Leader> {
  const leader = await leadAlone(store, runtime, { snapshotDueBytes });
  ends.push(() => leader.stop());
  return leader;
}

function exporting(
  store: MemoryStore,
  leader: Leader,
  sink: AuditSink,
  metrics = silentAuditMetrics,
  itsRuntime = runtime,
) {
  const log = new MemoryLog(store);
  const exporter = new AuditExporter({
    runtime: itsRuntime,
    log,
    leadership: leader.leadership,
    group: GROUP,
    sink,
    metrics,
    head: () => leader.position.index,
  });
  ends.push(() => exporter.stop());
  return exporter;
}

async function work(leader: Leader, names: number): Promise<void> {
  const [opened] = await leader.submit([openCommand()]);
  if (opened?.type !== 'opened') throw new Error('no session');
  const { session } = opened;
  for (let at = 0; at < names; at++) {
    const name = `lock-${at}`;
    const [granted] = await leader.submit([acquireCommand({ session, key: name, name })]);
    if (granted?.type !== 'granted') throw new Error('not granted');
    const { token } = granted;
    await leader.submit([{ type: 'release', session, attach: 1, name, token, key: '', acks: [name] }]);
  }
}

async function wholeHistory(store: MemoryStore): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  for await (const entry of history(new MemoryLog(store), 1)) entries.push(entry);
  return entries;
}

/** The log has let go of this entry. */
async function isTrimmed(store: MemoryStore, index: number): Promise<boolean> {
  try {
    for await (const _ of new MemoryLog(store).read(index)) return false;
    return false;
  } catch (error) {
    if (error instanceof TrimmedError) return true;
    throw error;
  }
}

test('every entry arrives once and in order, and the cursor follows', async () => {
  const store = new MemoryStore('l1');
  const leader = await lead(store);
  await work(leader, 20);
  const sink = new TestSink();
  const exporter = exporting(store, leader, sink);
  await expect.poll(() => sink.indexes.length).toBe(leader.position.index);
  await work(leader, 5);
  await expect.poll(() => sink.indexes.length).toBe(leader.position.index);
  expect(sink.lines).toEqual((await wholeHistory(store)).map((entry) => ({ group: GROUP, ...entry })));
  expect(exporter.lag).toEqual({ lagEntries: 0, lagMs: 0 });
  await expect.poll(() => store.auditCursor(), { timeout: 3_000 }).toBe(leader.position.index);
});

test('a dead sink stops nothing: the cursor stays behind, the lag shows, and all of it comes later', async () => {
  const store = new MemoryStore('l1');
  const leader = await lead(store);
  const sink = new TestSink();
  sink.failing = true;
  let failures = 0;
  const exporter = exporting(store, leader, sink, { ...silentAuditMetrics, failed: () => failures++ });
  await work(leader, 10);
  await expect.poll(() => failures).toBeGreaterThan(2);
  expect(exporter.lag.lagEntries).toBe(leader.position.index);
  expect(exporter.lag.lagMs).toBeGreaterThan(0);
  expect(store.auditCursor()).toBe(0);
  sink.failing = false;
  await expect.poll(() => sink.indexes.length, { timeout: 10_000 }).toBe(leader.position.index);
  expect(sink.indexes).toEqual(sink.indexes.map((_, at) => at + 1));
});

test('the next exporter goes on from the cursor; what is exported twice is the same', async () => {
  const store = new MemoryStore('l1');
  const first = await lead(store);
  const [early, late] = [new TestSink(), new TestSink()];
  const exporter = exporting(store, first, early);
  await work(first, 5);
  await expect.poll(() => early.indexes.length).toBe(first.position.index);
  exporter.stop();
  const second = await lead(store);
  await work(second, 5);
  exporting(store, second, late);
  await expect.poll(() => late.indexes.at(-1)).toBe(second.position.index);
  const all = [...early.lines, ...late.lines] as { index: number }[];
  const byIndex = new Map(all.map((line) => [line.index, line]));
  for (const line of all) expect(line).toEqual(byIndex.get(line.index));
  expect([...byIndex.keys()].sort((a, b) => a - b)).toEqual(
    Array.from({ length: second.position.index }, (_, at) => at + 1),
  );
});

test('one that is stopped while it replays what was exported before reads no further', async () => {
  const store = new MemoryStore('l1');
  const leader = await lead(store);
  await work(leader, 10);
  store.setAuditCursor(leader.leadership, leader.position.index);
  const log = new MemoryLog(store);
  const all = log.read.bind(log);
  const stopped = Promise.withResolvers<void>();
  let read = 0;
  log.read = async function* (fromIndex) {
    for await (const entry of all(fromIndex)) {
      yield entry;
      if (++read === 5) await stopped.promise;
    }
  };
  const exporter = new AuditExporter({
    ...{ runtime, log, leadership: leader.leadership, group: GROUP, metrics: silentAuditMetrics },
    sink: new TestSink(),
    head: () => leader.position.index,
  });
  await expect.poll(() => read).toBe(5);
  exporter.stop();
  stopped.resolve();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(read).toBeLessThanOrEqual(6);
  expect(leader.position.index).toBeGreaterThan(20);
});

test('a deposed exporter moves no cursor', async () => {
  const store = new MemoryStore('l1');
  const first = await lead(store);
  const sink = new TestSink();
  sink.failing = true;
  exporting(store, first, sink);
  await work(first, 3);
  await lead(store);
  sink.failing = false;
  await expect.poll(() => sink.indexes.length, { timeout: 5_000 }).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(store.auditCursor()).toBe(0);
});

test('a gap is counted, exported in its place, and the export goes on after it', async () => {
  const store = new MemoryStore('l1');
  // Nobody exports yet, so nothing holds the log back.
  const leader = await lead(store, 2_000);
  await work(leader, 60);
  await expect.poll(() => store.snapshots().length).toBe(2);
  await expect.poll(() => isTrimmed(store, 1)).toBe(true);
  const sink = new TestSink();
  let missing = 0;
  exporting(store, leader, sink, { ...silentAuditMetrics, gap: (entries) => (missing += entries) });
  await expect.poll(() => sink.indexes.at(-1)).toBe(leader.position.index);
  const [gap] = sink.lines as { type: string; from: number; to: number; group: string; lineage: string }[];
  expect(gap).toMatchObject({ type: 'gap', group: GROUP, lineage: 'l1', from: 1 });
  expect(missing).toBe(gap?.to);
  expect(sink.indexes).toEqual(sink.indexes.map((_, at) => (gap?.to ?? 0) + 1 + at));
});

test('a deposed exporter that wakes up tells of no gap: what it has not exported its successor has', async () => {
  const store = new MemoryStore('l1');
  const first = await lead(store, 2_000);
  const [early, late] = [new TestSink(), new TestSink()];
  let gaps = 0;
  const metrics = { ...silentAuditMetrics, gap: () => void gaps++ };
  // A process that stands still: what is due runs when it goes on.
  let due: (() => void)[] | null = null;
  const timers: Timers = {
    ...runtime.timers,
    after: (ms, run) => runtime.timers.after(ms, () => (due === null ? run() : void due.push(run))),
  };
  exporting(store, first, early, metrics, { ...runtime, timers });
  await work(first, 3);
  await expect.poll(() => store.auditCursor(), { timeout: 5_000 }).toBe(first.position.index);
  due = [];
  const second = await lead(store, 2_000);
  exporting(store, second, late, metrics);
  for (let round = 0; round < 20 && !(await isTrimmed(store, first.position.index + 1)); round++) {
    await work(second, 20);
    await expect.poll(() => store.auditCursor(), { timeout: 5_000 }).toBe(second.position.index);
  }
  expect(await isTrimmed(store, first.position.index + 1)).toBe(true);
  const run = due;
  due = null;
  expect(run.length).toBeGreaterThan(0);
  for (const call of run) call();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect(gaps).toBe(0);
  expect(early.lines).not.toContainEqual(expect.objectContaining({ type: 'gap' }));
});

test('a change of the leader costs nothing, however many snapshots have passed since the cursor', async () => {
  const store = new MemoryStore('l1');
  const first = await lead(store, 2_000);
  const [early, late] = [new TestSink(), new TestSink()];
  const metrics = { ...silentAuditMetrics, gap: () => expect.unreachable('nothing may be missing') };
  const exporter = exporting(store, first, early, metrics);
  await work(first, 15);
  await expect.poll(() => store.auditCursor(), { timeout: 5_000 }).toBeGreaterThan(20);
  early.failing = true;
  await work(first, 60);
  const cursor = store.auditCursor() ?? 0;
  await expect.poll(() => store.snapshots()[1]?.index).toBeGreaterThan(cursor + 20);
  exporter.stop();
  const second = await lead(store, 2_000);
  exporting(store, second, late, metrics);
  await expect.poll(() => late.indexes.at(-1), { timeout: 5_000 }).toBe(second.position.index);
  expect(late.indexes[0]).toBeLessThanOrEqual(cursor + 1);
  const all = new Set([...early.indexes, ...late.indexes]);
  expect(all.size).toBe(second.position.index);
  // And once it has caught up, what was kept for it goes.
  await expect.poll(() => store.auditCursor(), { timeout: 5_000 }).toBe(second.position.index);
  await work(second, 40);
  await expect.poll(() => store.snapshots().at(-1)?.index).toBeGreaterThan(cursor);
  await expect.poll(() => store.snapshots().length).toBeLessThanOrEqual(3);
});

test('an outage is told at once and once a minute, however often the sink is tried, and a slow one counts', async () => {
  const bench = await LeaderBench.start();
  const { runtime } = bench;
  let write: AuditSink['write'] = async () => {
    throw new Error('away');
  };
  const exporter = new AuditExporter({
    runtime,
    log: bench.log,
    leadership: bench.leader.leadership,
    group: GROUP,
    sink: { kind: 'file', write: (batch, signal) => write(batch, signal), close: async () => undefined },
    metrics: silentAuditMetrics,
    head: () => bench.leader.position.index,
  });
  ends.push(() => exporter.stop());
  const told = (): number => runtime.logged.filter((line) => line === 'the audit sink does not take').length;
  await runtime.pass(1_000);
  expect(told()).toBe(1);
  await runtime.pass(58_000);
  expect(told()).toBe(1);
  await runtime.pass(120_000);
  expect(told()).toBeGreaterThan(1);
  expect(told()).toBeLessThan(4);
  // It takes, and then it takes no more and says nothing either.
  write = async () => undefined;
  await runtime.pass(31_000);
  expect(exporter.lag.lagEntries).toBe(0);
  const before = told();
  write = () => new Promise(() => undefined);
  await bench.frontEnd().open(1);
  await runtime.pass(90_000);
  expect(exporter.lag.lagEntries).toBeGreaterThan(0);
  expect(told()).toBe(before + 1);
});

test.each([
  { isDeposed: false, told: ['the audit cannot be read from the log'] },
  { isDeposed: true, told: [] },
])('a log that contradicts itself is told of by the leader alone (deposed: $isDeposed)', async (made) => {
  const bench = await LeaderBench.start();
  const { runtime, log, store } = bench;
  let failed = 0;
  const exporter = new AuditExporter({
    ...{ runtime, log, leadership: bench.leader.leadership, group: GROUP, sink: new TestSink() },
    metrics: { ...silentAuditMetrics, failed: () => void failed++ },
    head: () => bench.leader.position.index,
  });
  ends.push(() => exporter.stop());
  await runtime.pass(1_000);
  if (made.isDeposed) store.campaign('successor');
  log.read = () => {
    throw new CorruptLogError('an entry is missing');
  };
  await runtime.pass(10_000);
  expect(runtime.logged).toEqual(made.told);
  expect(failed > 0).toBe(!made.isDeposed);
});

test('a sink that says when to come again is not asked before, within a bound', async () => {
  const bench = await LeaderBench.start();
  const { runtime } = bench;
  const askedAtMs: number[] = [];
  const write: AuditSink['write'] = async () => {
    askedAtMs.push(runtime.nowMs);
    throw new BusySinkError('busy', askedAtMs.length === 1 ? 50_000 : 1e12);
  };
  const exporter = new AuditExporter({
    runtime,
    log: bench.log,
    leadership: bench.leader.leadership,
    group: GROUP,
    sink: { kind: 'http', write, close: async () => undefined },
    metrics: silentAuditMetrics,
    head: () => bench.leader.position.index,
  });
  ends.push(() => exporter.stop());
  await runtime.pass(400_000);
  const [first = 0, second = 0, third = 0] = askedAtMs;
  expect(second - first).toBeCloseTo(50_000, -1);
  expect(third - second).toBeCloseTo(300_000, -1);
  expect(askedAtMs).toHaveLength(3);
});
