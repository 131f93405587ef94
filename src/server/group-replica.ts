/**
 * A member of a group as the services for operators see it. Figures are this replica's own, whether it leads or follows; the history
 * is read from the log; commands and certain reads only the leader can answer, so that elsewhere they are passed on to it.
 */
import type { Command, CommandResult, HistoryEntry } from '../api/entry.ts';
import type { ReadQuery, ReadResult } from '../api/wire.ts';
import type { LockLog } from '../log/port.ts';
import type { ServerGauges } from '../platform/metrics.ts';
import type { Timers } from '../platform/runtime.ts';
import type { Leader } from './leader.ts';
import type { Member } from './member.ts';
import { history } from './recovery.ts';
import type { ReplicaStatus } from './replica.ts';
import { unhurried } from './unhurried-log.ts';
import type { Watcher } from './watchers.ts';

/** This replica does not lead: nothing was done, and the leader may be asked instead. */
export class NotLeadingError extends Error {
  constructor() {
    super('this replica does not lead');
    this.name = 'NotLeadingError';
  }
}

export interface GroupReplicaOptions {
  readonly member: Member;
  readonly log: LockLog;
  readonly timers: Timers;
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

  history(fromIndex: number): AsyncIterable<HistoryEntry> {
    return history(unhurried(this.#options.log, this.#options.timers), fromIndex);
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
}
