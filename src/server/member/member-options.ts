/** What a member is given, and what it tells of its life. */
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry } from '../../api/entry.ts';
import type { FaultProbe } from '../../core/index.ts';
import type { LockLog, RollBackProof } from '../../log/port.ts';
import type { MarkOutcome } from '../../platform/metrics.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Shard } from '../front-end/admission.ts';
import type { DialLeader } from '../front-end/leader-link.ts';
import type { Leader } from '../leader/leader.ts';
import type { CommitStats } from '../leader/leader-options.ts';
import type { SuspicionSettings } from './suspicion.ts';

export interface MemberOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  /** What it brings into force when it leads. */
  readonly config: NamespaceConfig | null;
  /** `admin`: only at the birth of the log; from then on the configuration comes by Admin.Configure. Default: `file`. */
  readonly configuredBy?: 'file' | 'admin';
  readonly dial: DialLeader;
  /** Of the group, this one included. */
  readonly replicas: number;
  readonly suspicion: SuspicionSettings;
  /** Left out: this group serves all names. */
  readonly shard?: () => Shard;
  readonly snapshotDueBytes?: number;
  readonly probe?: FaultProbe;
  readonly onCommitted?: (entry: HistoryEntry, stats: CommitStats) => void;
  /** What became of a client's mark (rule S10). */
  readonly onMark?: (outcome: MarkOutcome) => void;
  /** A new lineage of the log has begun: this member is of no more use, and one that opens the log anew should take its place. */
  readonly onReplaced?: () => void;
  /** The log was rolled back: this replica stays, and serves nothing (rule S10). */
  readonly onRolledBack?: (proof: RollBackProof) => void;
  /** What runs beside the leader, as the audit exporter; the answer ends it. */
  readonly whileLeading?: (leader: Leader) => () => void;
  /** This replica leads no more: streams of other front ends must end. */
  readonly onDeposed?: () => void;
  /** It cannot go on: the log contradicts itself or this program (rule C14). The process should say why and end. */
  readonly onHalted: (error: unknown) => void;
}
