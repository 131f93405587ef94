/**
 * How long nothing is granted when a process that matters goes: the leader by SIGTERM and by kill -9, its whole node, and etcd's own
 * leader, where etcd's mutex stands beside it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from '../cluster.ts';
import { summarise } from '../measure.ts';
import { EtcdMutex } from '../peers/etcd-mutex.ts';
import { Probe } from '../probe.ts';
import type { Report } from '../report.ts';

const KILLS = 20;
const HAND_OVERS = 10;
const ETCD_KILLS = 5;
const NODE_LOSSES = 5;
/** Before each round, so that it finds a group at rest. */
const REST_MS = 500;
/** After a hand-over has begun: what is asked for until then may be held up by it. */
const HAND_OVER_MS = 1_500;
const ALL = [0, 1, 2];

export async function failOverPart(report: Report): Promise<void> {
  await using cluster = await Cluster.start({ isKilledOften: true });
  await using probe = new Probe(cluster.endpoints);
  const rounds = { report, cluster, probe };
  await handOvers(rounds);
  await kills(rounds);
  await nodeLosses(rounds);
  await etcdKills(rounds);
}

interface Rounds {
  readonly report: Report;
  readonly cluster: Cluster;
  readonly probe: Probe;
}

/** A group at rest, with somebody who asks through the front ends that do not lead: they are what is left. */
async function atRest({ cluster, probe }: Rounds): Promise<number> {
  const leader = await cluster.leader();
  await probe.through(ALL.filter((at) => at !== leader));
  await pause(REST_MS);
  return leader;
}

async function handOvers(rounds: Rounds): Promise<void> {
  const { cluster, probe, report } = rounds;
  const tookMs: number[] = [];
  for (let round = 0; round < HAND_OVERS; round++) {
    const leader = await atRest(rounds);
    const sinceMs = Date.now();
    cluster.signal(leader, 'SIGTERM');
    await pause(HAND_OVER_MS);
    tookMs.push(await probe.longestSince(sinceMs));
    await cluster.restart(leader);
  }
  tell(report, 'SIGTERM of the leader: longest wait for a free lock', tookMs);
}

async function kills(rounds: Rounds): Promise<void> {
  const { cluster, probe, report } = rounds;
  const tookMs: number[] = [];
  for (let round = 0; round < KILLS; round++) {
    const leader = await atRest(rounds);
    const sinceMs = Date.now();
    cluster.signal(leader, 'SIGKILL');
    tookMs.push(await probe.firstAfter(sinceMs));
    await cluster.restart(leader);
  }
  tell(report, 'kill -9 of the leader to the next grant', tookMs);
}

/** The leader and the etcd member beside it, which leads etcd too: the most that the loss of one node takes away. */
async function nodeLosses(rounds: Rounds): Promise<void> {
  const { cluster, probe, report } = rounds;
  const tookMs: number[] = [];
  for (let round = 0; round < NODE_LOSSES; round++) {
    await cluster.moveEtcdLeader(await cluster.leader());
    await pause(3 * REST_MS);
    const leader = await atRest(rounds);
    const sinceMs = Date.now();
    cluster.killEtcd(leader);
    cluster.signal(leader, 'SIGKILL');
    tookMs.push(await probe.firstAfter(sinceMs));
    await cluster.restartEtcd(leader);
    await cluster.restart(leader);
  }
  tell(report, "kill -9 of the leader and of etcd's leader beside it, to the next grant", tookMs);
}

/** Both locks lose the same etcd leader at the same moment. */
async function etcdKills(rounds: Rounds): Promise<void> {
  const { cluster, probe, report } = rounds;
  let mutex: EtcdMutex;
  try {
    mutex = await EtcdMutex.build();
  } catch (error) {
    report.notRun('etcd concurrency.Mutex', String(error));
    return;
  }
  await using peer = mutex.probe(cluster.etcdEndpoints);
  const ownMs: number[] = [];
  const peerMs: number[] = [];
  for (let round = 0; round < ETCD_KILLS; round++) {
    await probe.through(ALL);
    await pause(4 * REST_MS);
    const leader = await cluster.etcdLeader();
    const sinceMs = Date.now();
    cluster.killEtcd(leader);
    ownMs.push(await probe.firstAfter(sinceMs));
    peerMs.push(await peer.firstAfter(sinceMs));
    await cluster.restartEtcd(leader);
  }
  tell(report, "kill -9 of etcd's leader to the next grant", ownMs);
  tell(report, "kill -9 of etcd's leader to the next lock of its mutex", peerMs);
}

function tell(report: Report, what: string, timesMs: readonly number[]): void {
  const { p50Ms, p99Ms, maxMs, operations } = summarise(timesMs, 1);
  const rounded = { 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'max ms': maxMs };
  const figures = Object.fromEntries(Object.entries(rounded).map(([name, ms]) => [name, Math.round(ms)]));
  report.figures(what, { times: operations, ...figures });
}
