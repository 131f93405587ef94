/** What a leader is given, what it tells of its commits, and why it may stop. */
import type { HistoryEntry } from '../../api/entry.ts';
import type { FaultProbe } from '../../core/index.ts';
import type { LockLog, RollBackProof } from '../../log/port.ts';
import type { MarkOutcome } from '../../platform/metrics.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Recovered } from '../snapshots/recovery.ts';
import type { RecentEvents } from './recent-events.ts';

export interface LeaderOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  /** Why this server took over; goes into the log. Asked once it has won. */
  readonly reason: string | (() => string);
  /** Token floor of a new lineage (rule C12); ignored when the log has entries. */
  readonly tokenFloor: number;
  /** True in a group: entries also prove to standbys that the leader lives. A lone replica writes nothing without a reason. */
  readonly beatWhenIdle: boolean;
  /** Of the group, this one included: the behaviour level waits for all of them (rule C15). */
  readonly replicas: number;
  /** What a standby knows, read to the end of the log once it is won. Left out: the log is read from its start (rule S5). */
  readonly recover?: () => Promise<Recovered>;
  /** Events before this leadership, for front ends that missed them; the leader adds its own. */
  readonly recent?: RecentEvents;
  /** Told of every commit, after its answers are out. */
  readonly onCommitted?: (entry: HistoryEntry, stats: CommitStats) => void;
  /** What became of a client's mark (rule S10). */
  readonly onMark?: (outcome: MarkOutcome) => void;
  /** It has stood still for too long (rule S6). True: it is handed over now. */
  readonly onOverstalled?: () => boolean;
  /** The leader has stopped by itself: deposed, or it cannot go on. */
  readonly onStopped: (reason: StopReason) => void;
  readonly snapshotDueBytes?: number;
  readonly probe?: FaultProbe;
}

export type StopReason =
  | { readonly kind: 'deposed' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** Handed over to another replica, because this one stood still too often (rule S6). */
  | { readonly kind: 'handedOver' }
  /** The log was rolled back; the proof lies in it now (rule S10). */
  | { readonly kind: 'halted'; readonly proof: RollBackProof };

export interface CommitStats {
  readonly commands: number;
  readonly bytes: number;
  readonly commitMs: number;
  /** A standstill of the loop or of the commits before this one (rule S6); 0 = none. */
  readonly stalledMs: number;
}
