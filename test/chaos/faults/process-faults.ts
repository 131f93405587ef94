/** Processes die, stand still, and are started again in turn. */
import { setTimeout as pause } from 'node:timers/promises';
import { ETCDS, type GroupBench, SERVERS } from '../../support/group/group-bench.ts';
import type { Random } from '../../support/random.ts';
import type { Fault } from './fault.ts';

const END_MS_MAX = 15_000;

/** The one that leads, more often than not. */
async function aServer(bench: GroupBench, random: Random): Promise<string> {
  const other = random.pick(SERVERS);
  return random.chance(0.6) ? bench.leader().catch(() => other) : other;
}

async function kill(bench: GroupBench, names: readonly string[], downMs: number): Promise<boolean> {
  const killed = names.map((name) => bench.group.signal(name, 'SIGKILL'));
  await Promise.all(names.map((name) => bench.group.ended(name, END_MS_MAX)));
  await pause(downMs);
  await bench.group.start(names);
  return killed.every((isDone) => isDone);
}

async function freeze(bench: GroupBench, name: string, ms: number): Promise<boolean> {
  const isStopped = bench.group.signal(name, 'SIGSTOP');
  await pause(ms);
  return bench.group.signal(name, 'SIGCONT') && isStopped;
}

async function roll(bench: GroupBench, names: readonly string[]): Promise<boolean> {
  const asked: boolean[] = [];
  for (const name of names) {
    asked.push(bench.group.signal(name, 'SIGTERM'));
    await bench.group.ended(name, END_MS_MAX);
    await bench.group.start([name]);
    await pause(500);
  }
  return asked.every((isDone) => isDone);
}

const lane = 'processes';

export const processFaults: readonly Fault[] = [
  {
    name: 'kill -9 of a server',
    lane,
    seconds: 4,
    run: async ({ bench }, random) => kill(bench, [await aServer(bench, random)], random.int(3_000)),
  },
  {
    name: 'kill -9 of an etcd member',
    lane,
    seconds: 4,
    run: ({ bench }, random) => kill(bench, [random.pick(ETCDS)], random.int(3_000)),
  },
  {
    name: 'kill -9 of a sidecar',
    lane,
    seconds: 3,
    run: ({ bench }, random) => kill(bench, [random.pick(bench.sidecars)], random.int(1_500)),
  },
  {
    name: 'power loss of servers and etcd',
    lane,
    seconds: 6,
    run: ({ bench }) => kill(bench, [...SERVERS, ...ETCDS], 200),
  },
  {
    name: 'SIGSTOP of a server',
    lane,
    seconds: 4,
    run: async ({ bench }, random) => freeze(bench, await aServer(bench, random), random.between(300, 5_000)),
  },
  {
    name: 'SIGSTOP of an etcd member',
    lane,
    seconds: 3,
    run: ({ bench }, random) => freeze(bench, random.pick(ETCDS), random.between(300, 4_000)),
  },
  {
    name: 'SIGSTOP of a sidecar for less than the TTL',
    lane,
    seconds: 3,
    run: ({ bench, ttlMs }, random) =>
      freeze(bench, random.pick(bench.sidecars), random.between(300, ttlMs / 2)),
  },
  {
    name: 'SIGSTOP of a sidecar for more than the TTL',
    lane,
    seconds: 9,
    run: ({ bench, ttlMs }, random) =>
      freeze(bench, random.pick(bench.sidecars), ttlMs + random.between(500, 2_000)),
  },
  { name: 'rolling restart of the servers', lane, seconds: 8, run: ({ bench }) => roll(bench, SERVERS) },
  { name: 'rolling restart of etcd', lane, seconds: 9, run: ({ bench }) => roll(bench, ETCDS) },
];
