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

export async function groupPart(report: Report, seconds: number): Promise<void> {
  await using cluster = await Cluster.start();
  await using generator = new Generator();
  const at = await cluster.leader();
  const leader = [cluster.endpoints[at] as string];
  const all = cluster.endpoints;
  const etcds = cluster.etcdsFrom(at);
  const warmUpSeconds = WARM_UP_SECONDS;
  const watched = await cluster.processes();
  const saturate = { kind: 'saturate', seconds, warmUpSeconds, watched } as const;
  const packed = { ...saturate, streams: PACKED_STREAMS, packed: PACKED };
  const single = { ...saturate, streams: SINGLE_STREAMS, packed: 1 };

  const shared = { ...single, connections: SHARED_CONNECTIONS };
  for (const [what, load] of [
    ['packed frames, at the leader', { ...packed, endpoints: leader }],
    ['packed frames, over all front ends', { ...packed, endpoints: all }],
    ['2,000 streams over 20 connections, one op a frame', { ...shared, endpoints: leader }],
    ['2,000 streams, each its own connection', { ...single, endpoints: leader }],
  ] as const) {
    const result = await generator.run(load);
    report.row(what, result, processorTimes(result));
  }

  const before = await fencedPut(etcds, seconds);
  report.row('bare fenced put (yardstick)', before, '200 bytes, one at a time');
  const rate = {
    kind: 'uncontended',
    streams: OPEN_LOOP_STREAMS,
    perSecond: OPEN_LOOP_PER_SECOND,
    seconds,
  } as const;
  const atLeader = await generator.run({ ...rate, endpoints: leader });
  const overAll = await generator.run({ ...rate, endpoints: all });
  const after = await fencedPut(etcds, seconds);
  report.row('10,000 ops/s planned, at the leader', atLeader, beside(atLeader, before, after));
  report.row('10,000 ops/s planned, over all front ends', overAll, beside(overAll, before, after));
  report.row('bare fenced put again', after, 'shows how much the machine drifted');

  for (const [streams, endpoints, where] of [
    [2, leader, 'at the leader'],
    [100, leader, 'at the leader'],
    [100, all, 'over all front ends'],
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
    ];
    report.row(`one name, ${streams} workers, ${where}`, summary, notes.join('; '));
  }
  await mutexes(report, cluster, seconds);
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
