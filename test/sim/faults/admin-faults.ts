/** What an administrator does in the middle of it all: other limits, a removed namespace, broken locks, names out of service. */
import type { Command } from '../../../src/api/entry.ts';
import { holdsOf } from '../../../src/core/crowd.ts';
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { Group } from '../nodes/group.ts';
import { makeConfig } from '../plan.ts';
import { allowing, changeLive } from '../plan-locks.ts';
import { type FaultMaker, moment } from './fault.ts';

const POISONED_MS = [300, 3_000, 12_000];
const ABSENCE_MS = [100, 3_000, 20_000];

const configChange: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  if (group.config === null) return null;
  const { locks, names } = cluster.plan;
  group.configure(allowing(makeConfig(random), locks, names, random));
  return moment();
};

/** Permits and modes alone, while everything else stays as it is. */
const modesChange: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  if (group.config === null) return null;
  const { locks, names } = cluster.plan;
  const changed = changeLive(group.config, locks, names, random);
  if (changed === group.config) return null;
  group.configure(changed);
  return moment();
};

const namespaceRemoved: FaultMaker = (cluster, random) => {
  const group = random.pick(cluster.groups);
  const { config } = group;
  if (config === null) return null;
  group.configure(null);
  return {
    parts: [],
    forMs: random.pick(ABSENCE_MS),
    end: () => group.configure(config),
  };
};

interface Held {
  readonly name: string;
  readonly token: number;
}

function anyHeld(group: Group, random: Random): Held | null {
  const held = [...group.judge.state.locks.values()].flatMap((lock) =>
    [...holdsOf(lock)].map(({ token }) => ({ name: lock.name, token })),
  );
  return held.length === 0 ? null : random.pick(held);
}

/** A command of an administrator about a lock that is held. */
function aboutHeld(command: (held: Held, random: Random) => Command): FaultMaker {
  return (cluster, random) => {
    const group = random.pick(cluster.groups);
    const held = anyHeld(group, random);
    if (held === null) return null;
    group.submit(command(held, random));
    return moment();
  };
}

const BY_SIMULATOR = { reason: 'simulated', by: 'simulator' };

const breakLock = aboutHeld((held) => ({ type: 'break', ...held, now: false, ...BY_SIMULATOR }));

/** At once, whatever its holder believes: recorded as unsafe (rule C9). */
const breakNow = aboutHeld((held) => ({ type: 'break', ...held, now: true, ...BY_SIMULATOR }));

/** A resource says that it has refused a token: of the one that holds, or an older one. */
const reportStale = aboutHeld(({ name, token }, random) => ({
  type: 'reportStale',
  session: 0,
  name,
  token: token - random.int(3),
  resource: 'database',
}));

/** For a while whatever happens at a name by itself makes the state machine throw (rule C13). */
const poisonName: FaultMaker = (cluster, random) => {
  const { poison } = random.pick(cluster.groups);
  const name = `job-${random.int(cluster.plan.names)}`;
  if (poison.names.has(name)) return null;
  poison.names.add(name);
  return { parts: [], forMs: random.pick(POISONED_MS), end: () => void poison.names.delete(name) };
};

const quarantine: FaultMaker = (cluster: Cluster, random) => {
  const group = random.pick(cluster.groups);
  const name = `job-${random.int(cluster.plan.names)}`;
  group.submit({ type: 'quarantine', name, reason: 'simulated' });
  return moment();
};

/** Puts names back into service, sooner or later; at once when `isOver`. */
export function repairNames(cluster: Cluster, random: Random, isOver: boolean): void {
  for (const group of cluster.groups) {
    for (const { name, quarantined } of group.judge.state.locks.values()) {
      if (!quarantined || (!isOver && random.chance(0.7))) continue;
      group.submit({ type: 'unquarantine', name, by: 'simulator' });
    }
  }
}

export const adminFaults = {
  configChange,
  modesChange,
  namespaceRemoved,
  breakLock,
  breakNow,
  reportStale,
  poisonName,
  quarantine,
} satisfies Record<string, FaultMaker>;
