/** What operators and failing machines do to etcd. */
import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { ETCDS, type GroupBench } from '../../support/group/group-bench.ts';
import { replaceMember } from '../../support/group/replace-member.ts';
import type { Random } from '../../support/random.ts';
import { type Fault, untilEffect } from './fault.ts';

const lane = 'processes';
/** While etcd elects a leader none can be moved. */
const MOVED_MS_MAX = 10_000;

async function moveLeader(bench: GroupBench, random: Random): Promise<boolean> {
  const { leader } = await bench.etcd(ETCDS[0] as string).status();
  const members = await bench.etcd(ETCDS[0] as string).members();
  const from = members.find(({ id }) => id === leader);
  const to = random.pick(members.filter(({ id, isLearner }) => id !== leader && !isLearner));
  if (from === undefined) return false;
  await bench.etcd(`etcd-${from.name}`).moveLeader(to.id);
  await pause(500);
  return (await bench.etcd(`etcd-${to.name}`).status()).leader !== leader;
}

export const etcdFaults: readonly Fault[] = [
  {
    name: 'etcd moves its leader',
    lane,
    seconds: 1,
    run: ({ bench }, random) => untilEffect(MOVED_MS_MAX, () => moveLeader(bench, random)),
  },
  {
    name: 'defragmentation of a member',
    lane,
    seconds: 1,
    run: async ({ bench }, random) => {
      await bench.etcd(random.pick(ETCDS)).defragment();
      return true;
    },
  },
  {
    name: 'compaction',
    lane,
    seconds: 1,
    run: async ({ bench }, random) => {
      const member = bench.etcd(random.pick(ETCDS));
      await member.compact((await member.status()).revision);
      return true;
    },
  },
  {
    name: 'a member wiped and replaced',
    lane,
    seconds: 8,
    run: async ({ bench }, random) => {
      const name = random.pick(ETCDS);
      await bench.kill(name);
      await replaceMember(bench, name, (folder) => rmSync(folder, { recursive: true, force: true }));
      return true;
    },
  },
];
