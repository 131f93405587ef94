/** How large one group may be: 20,000 sessions, and 1,000,000 locks held at once. */
import { Cluster } from '../cluster.ts';
import { Generator } from '../load/generator.ts';
import { Probe } from '../probe.ts';
import type { Report } from '../report.ts';

const SESSIONS = 20_000;
const SESSION_STREAMS = 200;
/** The most that a namespace may have is 1,000,000: some are left for whoever asks during the take-over. */
const LOCKS = 999_000;
const LOCK_STREAMS = 20;
/** Shorter says little about keepalives that come every three seconds. */
const SESSIONS_SECONDS_MIN = 9;
const READY_MS_MAX = 120_000;
const ALL = [0, 1, 2];

export async function sessionsPart(report: Report, seconds: number): Promise<void> {
  await using cluster = await Cluster.start();
  await using generator = new Generator();
  const leader = await cluster.leader();
  const startedMs = performance.now();
  const before = cluster.usage(leader).cpuSeconds;
  const kept = await generator.run({
    kind: 'keepSessions',
    endpoints: cluster.endpoints,
    streams: SESSION_STREAMS,
    sessions: SESSIONS,
    seconds: Math.max(SESSIONS_SECONDS_MIN, seconds),
  });
  const { residentMiB, cpuSeconds } = cluster.usage(leader);
  const share = ((cpuSeconds - before) / ((performance.now() - startedMs) / 1000)) * 100;
  report.row('20,000 sessions on 200 streams: keepalive frames', kept);
  report.figures('their keepalives', {
    'answered before the next is due': `${(100 * kept.inTime).toFixed(2)} %`,
    'sessions lost': kept.lost,
    'leader RSS': `${residentMiB.toFixed(0)} MiB`,
    'leader CPU, opening included': `${share.toFixed(0)} % of a core`,
  });
}

export async function locksPart(report: Report): Promise<void> {
  await using cluster = await Cluster.start();
  await using generator = new Generator();
  const leader = await cluster.leader();
  const others = ALL.filter((at) => at !== leader);
  const endpoints = others.map((at) => cluster.endpoints[at] as string);
  const filled = await generator.run({ kind: 'holdLocks', endpoints, streams: LOCK_STREAMS, locks: LOCKS });
  report.row('taking 999,000 locks', filled, 'through the front ends that do not lead');
  const { residentMiB } = cluster.usage(leader);
  const standbysMiB = others.map((at) => `${cluster.usage(at).residentMiB.toFixed(0)} MiB`);
  await using probe = new Probe(cluster.endpoints);
  await probe.through(others);
  const sinceMs = Date.now();
  cluster.signal(leader, 'SIGKILL');
  const takeOverMs = await probe.firstAfter(sinceMs);
  const successor = await cluster.leader(leader);
  const held = (await cluster.status(successor))?.held ?? 0;
  const recovering = performance.now();
  await cluster.restart(leader);
  const readyMs = await cluster.caughtUp(leader, READY_MS_MAX, recovering);
  report.figures('999,000 locks held', {
    'leader RSS': `${residentMiB.toFixed(0)} MiB`,
    'standbys RSS': standbysMiB.join(' and '),
    'kill -9 of the leader to the next grant': `${Math.round(takeOverMs)} ms`,
    'still held': held,
    'cold replica, from start to the head of the log': `${(readyMs / 1000).toFixed(1)} s`,
    'its RSS': `${cluster.usage(leader).residentMiB.toFixed(0)} MiB`,
  });
}
