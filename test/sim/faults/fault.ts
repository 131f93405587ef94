/** The shape of a fault: it has begun when it is made, and says for how long it lasts and how it ends. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';

export interface Fault {
  /** Parts that it hinders while it lasts (see FaultsSeen). */
  readonly parts: readonly string[];
  readonly forMs: number;
  readonly end: () => void;
}

/** Null: there is nothing it could strike now. */
export type FaultMaker = (cluster: Cluster, random: Random) => Fault | null;

/** A moment that has no end of its own. */
export function moment(parts: readonly string[] = []): Fault {
  return { parts, forMs: 0, end: () => undefined };
}

/** What the faults of a log need to know of a group, of one server or of several. */
interface OnLog {
  readonly part: string;
  readonly servers: readonly { setSlow(ms: number): void }[];
  readonly store: { depose(): void };
}

export function logSlow({ part, servers }: OnLog, random: Random): Fault {
  const slowMs = random.pick([50, 300, 1_000, 4_000]);
  for (const server of servers) server.setSlow(slowMs);
  return {
    parts: [part],
    forMs: random.pick([500, 5_000, 30_000]),
    end: () => {
      for (const server of servers) server.setSlow(0);
    },
  };
}

/** The leader loses the log and nobody has taken it; the holder of its key lives. */
export function logDepose({ part, store }: OnLog): Fault {
  store.depose();
  return moment([part]);
}
