/** A lock group as sidecars, judges and faults see it, whether one process serves it or several do. */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { Command } from '../../../src/api/entry.ts';
import type { Poison } from '../faults/poison.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Listener } from '../world/network.ts';
import type { Life } from '../world/process.ts';
import type { WatchedStore } from './watched-log.ts';

export interface Group {
  readonly alias: string;
  readonly judge: GroupJudge;
  readonly store: WatchedStore;
  readonly poison: Poison;
  /** Name of the group among the parts that faults hinder: hindered while nothing is committed. */
  readonly part: string;
  /** The group and each of its servers. */
  readonly parts: readonly string[];
  readonly config: NamespaceConfig | null;
  /** Places at which clients can connect. */
  readonly endpoints: number;
  /** For each place: the parts without which it serves nobody. */
  readonly endpointParts: readonly (readonly string[])[];
  /** The place that leads; null: nobody does. */
  readonly leaderPlace: number | null;
  /** Where a new stream to this place arrives; null: nobody listens there. */
  listener(place: number): Listener | null;
  /** Whether this process has the leader in it. */
  leads(life: Life): boolean;
  /** Resolves when it serves. */
  start(life?: Life): Promise<void>;
  /** An administrator's wish, which is lost if nobody leads. */
  configure(config: NamespaceConfig | null): void;
  submit(command: Command): void;
  /** Once a second. */
  look(): void;
}
