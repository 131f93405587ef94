/** One group: at its limit, at a fixed rate beside the bare fenced put, and with all workers on one name. */
import { Cluster } from '../cluster.ts';
import { fencedPut } from '../fenced-put.ts';
import { Generator } from '../load/generator.ts';
import type { Saturated } from '../load/packed.ts';
import type { Summary } from '../measure.ts';
import { EtcdMutex } from '../peers/etcd-mutex.ts';
import { type Report, times } from '../report.ts';

const PACKED_STREAMS = 20;
const PACKED = 200;
const SINGLE_STREAMS = 2_000;
const SHARED_CONNECTIONS = 20;
const WARM_UP_SECONDS = 2;
const OPEN_LOOP_PER_SECOND = 10_000;
const OPEN_LOOP_STREAMS = 20;

/** What the saturating loads leave in etcd (a long log, then snapshots and compactions) must not weigh on the quieter ones: those are first. */
export async function groupPart(report: Report, seconds: number): Promise<void> {
  await using cluster = await Cluster.start();
  await using generator = new Generator();
  const load = { report, seconds, cluster, generator, at: await cluster.leader() };
  await fixedRate(load);
  await oneName(load);
  await saturated(load);
  await mutexes(report, cluster, seconds);
}

interface GroupLoad {
  readonly report: Report;
  readonly seconds: number;
  readonly cluster: Cluster;
  readonly generator: Generator;
  /** Place of the leader. */
  readonly at: number;
}

/** Beside the bare fenced put, just before and just after. */
async function fixedRate({ report, seconds, cluster, generator, at }: GroupLoad): Promise<void> {
  const etcds = cluster.etcdsFrom(at);
  const rate = {
    kind: 'uncontended',
    streams: OPEN_LOOP_STREAMS,
    perSecond: OPEN_LOOP_PER_SECOND,
    seconds,
    warmUpSeconds: WARM_UP_SECONDS,
  } as const;
  // So that all of them, and this process, have compiled what they run.
  await generator.run({ ...rate, endpoints: cluster.endpoints, seconds: 1 });
  await fencedPut(etcds, 1);
  const before = await fencedPut(etcds, seconds);
  report.row('bare fenced put (yardstick)', before, '200 bytes, one at a time');
  const atLeader = await generator.run({ ...rate, endpoints: [cluster.endpoints[at] as string] });
  const overAll = await generator.run({ ...rate, endpoints: cluster.endpoints });
  const after = await fencedPut(etcds, seconds);
  report.row('10,000 ops/s planned, at the leader', atLeader, beside(atLeader, before, after));
  report.row('10,000 ops/s planned, over all front ends', overAll, beside(overAll, before, after));
  report.row('bare fenced put again', after, 'shows how much the machine drifted');
}

async function oneName({ report, seconds, cluster, generator, at }: GroupLoad): Promise<void> {
  const etcds = cluster.etcdsFrom(at);
  const leader = [cluster.endpoints[at] as string];
  for (const [streams, endpoints, where] of [
    [2, leader, 'at the leader'],
    [100, leader, 'at the leader'],
    [100, cluster.endpoints, 'over all front ends'],
  ] as const) {
    const putBefore = await fencedPut(etcds, Math.max(1, seconds / 2));
    const entriesBefore = await entries(cluster, at);
    const summary = await generator.run({ kind: 'oneName', streams, endpoints, seconds });
    const written = (await entries(cluster, at)) - entriesBefore;
    const putAfter = await fencedPut(etcds, Math.max(1, seconds / 2));
    const putMs = 500 / putBefore.perSecond + 500 / putAfter.perSecond;
    const notes = [
      `${((summary.perSecond * putMs) / 1000).toFixed(2)} hand-overs a fenced put`,
      `${(written / summary.operations).toFixed(2)} entries a hand-over`,
      `p99 of the wait / mean ${summary.unfairness.toFixed(2)}`,
      `p99 of the put / mean ${((putBefore.p99Ms + putAfter.p99Ms) / 2 / putMs).toFixed(2)}`,
    ];
    report.row(`one name, ${streams} workers, ${where}`, summary, notes.join('; '));
  }
}

async function saturated({ report, seconds, cluster, generator, at }: GroupLoad): Promise<void> {
  const leader = [cluster.endpoints[at] as string];
  const all = cluster.endpoints;
  const watched = await cluster.processes();
  const saturate = { kind: 'saturate', seconds, warmUpSeconds: WARM_UP_SECONDS, watched } as const;
  const packed = { ...saturate, streams: PACKED_STREAMS, packed: PACKED };
  const single = { ...saturate, streams: SINGLE_STREAMS, packed: 1 };
  const shared = { ...single, connections: SHARED_CONNECTIONS };
  for (const [what, load] of [
    ['packed frames, at the leader', { ...packed, endpoints: leader }],
    ['packed frames, over all front ends', { ...packed, endpoints: all }],
    ['one op a frame, 20 connections, at the leader', { ...shared, endpoints: leader }],
    ['one op a frame, 20 connections, over all front ends', { ...shared, endpoints: all }],
    ['one op a frame, 2,000 connections, at the leader', { ...single, endpoints: leader }],
  ] as const) {
    const result = await generator.run(load);
    report.row(what, result, processorTimes(result));
  }
}

/** Entries in the log so far. */
async function entries(cluster: Cluster, at: number): Promise<number> {
  const status = await cluster.status(at);
  if (status === null) throw new Error('the server does not answer');
  return status.position.index;
}

/** etcd's own lock on the very same etcd: distinct names, then one. */
async function mutexes(report: Report, cluster: Cluster, seconds: number): Promise<void> {
  let mutex: EtcdMutex;
  try {
    mutex = await EtcdMutex.build();
  } catch (error) {
    report.notRun('etcd concurrency.Mutex', String(error));
    return;
  }
  for (const workers of [20, 200, 1_000]) {
    const summary = await mutex.lock(cluster.etcdEndpoints, { workers, oneName: false, seconds });
    report.row(`etcd concurrency.Mutex, distinct names, ${workers} workers`, summary);
  }
  for (const workers of [2, 100]) {
    const summary = await mutex.lock(cluster.etcdEndpoints, { workers, oneName: true, seconds });
    const unfairness = summary.p99Ms / summary.meanMs;
    const notes = `hand-overs; p99 of the wait / mean ${unfairness.toFixed(2)}`;
    report.row(`etcd concurrency.Mutex, one name, ${workers} workers`, summary, notes);
  }
}

/** Processor time of an operation, by process: what all of it together costs, and where. */
function processorTimes({ processorMs, operations }: Saturated): string {
  const perOperation = Object.entries(processorMs).map(
    ([name, ms]) => [name, (ms * 1000) / operations] as const,
  );
  const sum = perOperation.reduce((total, [, us]) => total + us, 0);
  const list = perOperation.map(([name, us]) => `${name} ${us.toFixed(1)}`);
  return `CPU ${sum.toFixed(1)} us an operation: ${list.join(', ')}`;
}

/** Latencies in terms of the fenced put just before and just after. */
function beside(summary: Summary, before: Summary, after: Summary): string {
  const p50Ms = (before.p50Ms + after.p50Ms) / 2;
  const p99Ms = (before.p99Ms + after.p99Ms) / 2;
  return `p50 ${times(summary.p50Ms, p50Ms)}, p99 ${times(summary.p99Ms, p99Ms)} the fenced put's`;
}
