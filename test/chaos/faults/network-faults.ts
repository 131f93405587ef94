/** The lines between the processes: cut in both directions or one, slow, dead without saying so. */
import { setTimeout as pause } from 'node:timers/promises';
import { DROP, type Flow, HOLD, PASS } from '../../support/faulty-flow.ts';
import type { LinkFault } from '../../support/faulty-proxy.ts';
import { ETCDS, SERVERS } from '../../support/group/group-bench.ts';
import type { Random } from '../../support/random.ts';
import { type Fault, type Scene, untilEffect } from './fault.ts';

const lane = 'network';
/** A server that starts has no lines yet. */
const EFFECT_MS_MAX = 10_000;
const CUT: LinkFault = { requests: HOLD, replies: HOLD };

type Pair = readonly [from: string, to: string];

/** Any two that talk to each other. */
function aPair({ bench }: Scene, random: Random): Pair {
  const server = random.pick(SERVERS);
  const other = random.pick(SERVERS.filter((name) => name !== server));
  const member = random.pick(ETCDS);
  const pairs: Pair[] = [
    [server, 'etcd-*'],
    [server, member],
    [server, other],
    [random.pick(bench.sidecars), server],
    ['app', random.pick(bench.sidecars)],
    [random.pick(ETCDS.filter((name) => name !== member)), member],
  ];
  return random.pick(pairs);
}

async function hinder(
  { bench }: Scene,
  pairs: readonly Pair[],
  fault: LinkFault,
  ms: number,
): Promise<boolean> {
  const { net } = bench;
  for (const [from, to] of pairs) net.hindered(from, to);
  for (const [from, to] of pairs) net.fault(from, to, fault);
  await pause(ms);
  const bytes = pairs.map(([from, to]) => net.hindered(from, to));
  for (const [from, to] of pairs) net.heal(from, to);
  return bytes.some((count) => count > 0);
}

function flowed(flow: (random: Random) => Flow): (scene: Scene, random: Random) => Promise<boolean> {
  return (scene, random) => {
    const fault = { requests: flow(random), replies: flow(random) };
    // A pair that is silent just then has not been hit: two more make a hit all but certain.
    const pairs = [aPair(scene, random), [random.pick(SERVERS), 'etcd-*'], ['app', 'sidecar-1']] as const;
    return hinder(scene, pairs, fault, random.between(1_000, 5_000));
  };
}

async function apart(scene: Scene, name: string, fault: LinkFault, ms: number): Promise<boolean> {
  const own = scene.bench.sidecars;
  const pairs: Pair[] = [
    [name, 'etcd-*'],
    [name, 'server-*'],
    ...SERVERS.filter((other) => other !== name).map((other): Pair => [other, name]),
    ...own.map((sidecar): Pair => [sidecar, name]),
  ];
  return hinder(scene, pairs, fault, ms);
}

const leading = ({ bench }: Scene): Promise<string> => bench.leader().catch(() => SERVERS[0] as string);

export const networkFaults: readonly Fault[] = [
  {
    name: 'a server cut off from everybody',
    lane,
    seconds: 5,
    run: async (scene, random) => apart(scene, await leading(scene), CUT, random.between(1_000, 6_000)),
  },
  {
    name: 'the leader cut off from etcd only',
    lane,
    seconds: 5,
    run: async (scene, random) =>
      hinder(scene, [[await leading(scene), 'etcd-*']], CUT, random.between(1_000, 6_000)),
  },
  {
    name: 'the leader cut off from the other servers only',
    lane,
    seconds: 5,
    run: async (scene, random) => {
      const leader = await leading(scene);
      const pairs = SERVERS.filter((name) => name !== leader).map((name): Pair => [name, leader]);
      return hinder(scene, pairs, CUT, random.between(1_000, 6_000));
    },
  },
  {
    name: 'an etcd member cut off from the others',
    lane,
    seconds: 4,
    run: (scene, random) => {
      const member = random.pick(ETCDS);
      const others = ETCDS.filter((name) => name !== member);
      const pairs = others.flatMap((other): Pair[] => [
        [other, member],
        [member, other],
      ]);
      return hinder(scene, pairs, CUT, random.between(1_000, 5_000));
    },
  },
  {
    name: 'answers of etcd lost after the commit',
    lane,
    seconds: 2,
    run: async (scene, random) => {
      const pairs: Pair[] = [[await leading(scene), 'etcd-*']];
      return hinder(scene, pairs, { requests: PASS, replies: DROP }, random.between(100, 1_500));
    },
  },
  {
    name: 'one direction of a line cut',
    lane,
    seconds: 4,
    run: async (scene, random) => {
      const [one, other] = random.chance(0.5) ? [HOLD, PASS] : [PASS, HOLD];
      const pairs: Pair[] = [aPair(scene, random), [await leading(scene), 'etcd-*']];
      return hinder(scene, pairs, { requests: one, replies: other }, random.between(1_000, 5_000));
    },
  },
  {
    name: 'a line late by up to 300 ms',
    lane,
    seconds: 3,
    run: flowed((random) => ({ kind: 'delay', ms: random.between(20, 150), jitterMs: 150 })),
  },
  {
    name: 'a line that drips',
    lane,
    seconds: 3,
    run: flowed((random) => ({ kind: 'drip', bytesPerSecond: random.between(200, 20_000) })),
  },
  {
    name: 'half-open connections',
    lane,
    seconds: 3,
    run: async (scene, random) => {
      const pairs: Pair[] = [aPair(scene, random), [await leading(scene), 'etcd-*']];
      const hit = pairs.map(([from, to]) => scene.bench.net.halfOpen(from, to));
      await pause(random.between(1_000, 4_000));
      for (const [from, to] of pairs) scene.bench.net.cut(from, to);
      return hit.some((count) => count > 0);
    },
  },
  {
    name: 'all connections of a pair broken',
    lane,
    seconds: 1,
    run: (scene, random) =>
      untilEffect(EFFECT_MS_MAX, async () => {
        const pairs = [
          aPair(scene, random),
          ['server-*', random.pick(ETCDS)],
          ['sidecar-1', 'server-*'],
        ] as const;
        const hit = pairs.map(([from, to]) => scene.bench.net.cut(from, to));
        return hit.some((count) => count > 0);
      }),
  },
];
