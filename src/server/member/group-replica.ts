/**
 * A member of a group as the services for operators see it. Figures are this replica's own, whether it leads or follows; the history
 * is read from the log; commands and certain reads only the leader can answer, so that elsewhere they are passed on to it.
 */
import type { Command, CommandResult, HistoryEntry } from '../../api/entry.ts';
import type { ReadQuery, ReadResult } from '../../api/wire.ts';
import { DeposedError, type LockLog } from '../../log/port.ts';
import type { ServerGauges } from '../../platform/metrics.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Leader } from '../leader/leader.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import { history } from '../snapshots/recovery.ts';
import { unhurried } from '../snapshots/unhurried-log.ts';
import { AuditRunningError } from './audit-running.ts';
import type { Member } from './member.ts';
import type { ReplicaStatus } from './replica.ts';
import type { Watcher } from './watchers.ts';

/** How often it looks whether somebody else leads. */
const LOOK_MS = 10;
/** Nobody may win for as long as an etcd lease and a suspicion take. */
const SUCCESSOR_MS_MAX = 6_000;
/** A snapshot of a full state, at the pace of rule L5. */
const SNAPSHOT_MS_MAX = 120_000;

export interface HandedOver {
  readonly serverId: string;
  readonly tookMs: number;
}

export interface MadeSnapshot {
  readonly index: number;
  readonly bytes: number;
  readonly tookMs: number;
}

/** How far the audit is exported. */
export interface AuditProgress {
  /** Null: nobody exports, or has done so. */
  readonly cursor: number | null;
  readonly logIndex: number;
  readonly lagBytes: number;
  readonly serverId: string;
  /** Where this server exports to while it leads; empty: it does not. */
  readonly sink: string;
}

export interface GroupReplicaOptions {
  readonly member: Member;
  readonly log: LockLog;
  readonly runtime: Runtime;
  readonly serverId: string;
  /** Where this server exports its audit to, while it leads; left out: nowhere. */
  readonly auditSink?: string;
}

export class GroupReplica {
  readonly #options: GroupReplicaOptions;

  constructor(options: GroupReplicaOptions) {
    this.#options = options;
  }

  async status(): Promise<ReplicaStatus> {
    const { member } = this.#options;
    const { state } = member;
    const status = await member.status();
    return {
      serverId: status.serverId,
      role: status.role,
      position: status.position,
      logIndex: status.logIndex,
      leader: status.leader?.serverId ?? '',
      connected: status.isOnLeader,
      leading: status.role === 'leading',
      configVersion: state?.configVersion ?? 0,
      config: state?.config ?? null,
      sessions: status.sessions,
      held: status.held,
      waiting: status.waiting,
      names: state?.locks.size ?? 0,
      clients: status.clients,
      lastToken: state?.lastToken ?? 0,
      problem: status.storageProblem ?? '',
    };
  }

  gauges(): ServerGauges | null {
    return this.#options.member.gauges();
  }

  async submit(command: Command): Promise<CommandResult> {
    const [result] = await this.#leader.submit([command]);
    return result as CommandResult;
  }

  async read(query: ReadQuery): Promise<ReadResult> {
    return await this.#leader.read(query);
  }

  /** Rejects with NotLeadingError. Resolves once another replica has won; it may be another than `to`. */
  async handOver(to: string): Promise<HandedOver> {
    const { log, member } = this.#options;
    const startedMs = this.#nowMs();
    // Not what the log says: of a leader that does not know yet that it is deposed, the successor may lead already.
    const own = this.#leader.position.epoch;
    await member.handOver(to);
    for (;;) {
      const leader = await log.leader();
      const tookMs = this.#nowMs() - startedMs;
      if (leader !== null && leader.epoch > own) return { serverId: leader.serverId, tookMs };
      if (tookMs > SUCCESSOR_MS_MAX) throw new Error('nobody has taken over yet');
      await this.#pause(LOOK_MS);
    }
  }

  /** Rejects with NotLeadingError, or when none was made in time. */
  async snapshot(): Promise<MadeSnapshot> {
    const { log } = this.#options;
    const startedMs = this.#nowMs();
    const before = (await log.snapshots())[0]?.index ?? 0;
    const leader = this.#leader;
    leader.demandSnapshot();
    for (;;) {
      const newest = (await log.snapshots())[0];
      const tookMs = this.#nowMs() - startedMs;
      if (newest !== undefined && newest.index > before) {
        return { index: newest.index, bytes: newest.bytes, tookMs };
      }
      if (!leader.isLeading) throw new NotLeadingError();
      if (tookMs > SNAPSHOT_MS_MAX)
        throw new Error('no snapshot was made in time; the log of the leader says why');
      await this.#pause(10 * LOOK_MS);
    }
  }

  /** Rejects with NotLeadingError. */
  async audit(): Promise<AuditProgress> {
    const { log, serverId, auditSink: sink = '' } = this.#options;
    const logIndex = this.#leader.position.index;
    const cursor = await log.auditCursor();
    const lagBytes = cursor === null ? 0 : await log.retainedBytes(cursor);
    return { cursor, logIndex, lagBytes, serverId, sink };
  }

  /** Rejects with NotLeadingError or AuditRunningError. Resolves to where the cursor stood; null: there was none. */
  async forgetAudit(): Promise<number | null> {
    const { log, serverId, auditSink } = this.#options;
    const { leadership } = this.#leader;
    if (auditSink !== undefined) throw new AuditRunningError(serverId, auditSink);
    const cursor = await log.auditCursor();
    await log.setAuditCursor(leadership, null).catch((error: unknown) => {
      throw error instanceof DeposedError ? new NotLeadingError() : error;
    });
    return cursor;
  }

  history(fromIndex: number): AsyncIterable<HistoryEntry> {
    return history(unhurried(this.#options.log, this.#options.runtime.timers), fromIndex);
  }

  /** After a change of roles some entries may be left out: the log has them. */
  watch(watcher: Watcher): () => void {
    return this.#options.member.watch(watcher);
  }

  get #leader(): Leader {
    const { leader } = this.#options.member;
    if (leader === null) throw new NotLeadingError();
    return leader;
  }

  #pause(delayMs: number): Promise<void> {
    return pause(this.#options.runtime.timers, delayMs);
  }

  #nowMs(): number {
    return this.#options.runtime.clock.monotonicMs();
  }
}
