/**
 * One lock server of one namespace: its log, its front end, and, when it wins the log, the leader. With one replica it
 * always wins; a group adds standbys and the stream between front end and leader, not another way through.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import type { Command, CommandResult, HistoryEntry } from '../../api/entry.ts';
import type { Position, ReadQuery, ReadResult } from '../../api/wire.ts';
import type { FaultProbe } from '../../core/index.ts';
import type { LockLog } from '../../log/port.ts';
import type { MarkOutcome, ServerGauges } from '../../platform/metrics.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Shard } from '../front-end/admission.ts';
import { FrontEnd } from '../front-end/front-end.ts';
import { configure } from '../leader/configure.ts';
import { Leader } from '../leader/leader.ts';
import type { CommitStats, StopReason } from '../leader/leader-options.ts';
import { floorOfBirth } from '../leader/take-over.ts';
import { history } from '../snapshots/recovery.ts';
import { unhurried } from '../snapshots/unhurried-log.ts';
import { gaugesOf } from './gauges.ts';
import { type Watcher, Watchers } from './watchers.ts';

export interface ReplicaOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  readonly config: NamespaceConfig | null;
  readonly beatWhenIdle?: boolean;
  /** Left out: this group serves all names. */
  readonly shard?: () => Shard;
  readonly snapshotDueBytes?: number;
  readonly onCommitted?: (entry: HistoryEntry, stats: CommitStats) => void;
  /** What became of a client's mark (rule S10). */
  readonly onMark?: (outcome: MarkOutcome) => void;
  /** The replica serves no more: the process should say why and end, or start it anew. */
  readonly onStopped: (reason: StopReason) => void;
  readonly probe?: FaultProbe;
}

/** What a replica is in its group; one alone always leads. */
export type ReplicaRole = 'leading' | 'following' | 'starting' | 'halted';

export interface ReplicaStatus {
  readonly serverId: string;
  readonly role: ReplicaRole;
  readonly position: Position;
  /** The newest entry of the log; null: the log does not answer. */
  readonly logIndex: number | null;
  /** Who leads by the log; empty: nobody, or it does not answer. */
  readonly leader: string;
  /** Its front end can pass requests on to the leader. */
  readonly connected: boolean;
  readonly leading: boolean;
  readonly configVersion: number;
  readonly config: NamespaceConfig | null;
  readonly sessions: number;
  readonly held: number;
  readonly waiting: number;
  readonly names: number;
  readonly clients: number;
  readonly lastToken: number;
  /** That members of the storage are corrupt or differ (case G16); '': not as far as it knows. */
  readonly problem: string;
}

export class Replica {
  readonly frontEnd: FrontEnd;
  readonly #options: ReplicaOptions;
  readonly #leader: Leader;
  readonly #watchers: Watchers;
  /** The last change of the configuration: they come into force one after the other. */
  #configuring: Promise<unknown> = Promise.resolve();

  private constructor(options: ReplicaOptions, leader: Leader, watchers: Watchers) {
    this.#options = options;
    this.#leader = leader;
    this.#watchers = watchers;
    this.frontEnd = new FrontEnd(options.runtime, () => this.#leader.state.config, {
      lineage: options.log.lineage,
      ...(options.shard === undefined ? {} : { shard: options.shard }),
    });
    const link = { send: this.frontEnd.fromLeader.bind(this.frontEnd) };
    this.frontEnd.setLeader({
      get position() {
        return leader.position;
      },
      send: (frame) => leader.receive(link, frame),
    });
  }

  /** Takes the log over, applies the configuration and serves. */
  static async start(options: ReplicaOptions): Promise<Replica> {
    const { runtime, log, serverId, onStopped, probe, snapshotDueBytes } = options;
    const watchers = new Watchers(runtime.logger);
    let replica: Replica | null = null;
    const leader = await Leader.start({
      runtime,
      log,
      serverId,
      reason: 'start',
      replicas: 1,
      tokenFloor: floorOfBirth(runtime.clock.wallMs()),
      beatWhenIdle: options.beatWhenIdle ?? false,
      onCommitted: (entry, stats) => {
        options.onCommitted?.(entry, stats);
        watchers.tell(entry);
      },
      onStopped: (reason) => {
        replica?.frontEnd.setLeader(null);
        onStopped(reason);
      },
      ...(snapshotDueBytes === undefined ? {} : { snapshotDueBytes }),
      ...(probe === undefined ? {} : { probe }),
      ...(options.onMark === undefined ? {} : { onMark: options.onMark }),
    });
    replica = new Replica(options, leader, watchers);
    await replica.configure(options.config);
    return replica;
  }

  /**
   * Brings a configuration into force, if it differs from the one that is. Returns whether it did; rejects when it could not.
   */
  configure(config: NamespaceConfig | null): Promise<boolean> {
    // The version comes from the configuration before, so two changes at once would claim the same one (rule C11).
    const configured = this.#configuring.then(() => configure(this.#leader, config));
    this.#configuring = configured.catch(() => undefined);
    return configured;
  }

  /** Runs one administrative command; resolves with its committed answer. */
  async submit(command: Command): Promise<CommandResult> {
    const [result] = await this.#leader.submit([command]);
    return result as CommandResult;
  }

  /** A read with the certainty of S1: true after a commit that began after this call. */
  read(query: ReadQuery): Promise<ReadResult> {
    return this.#leader.read(query);
  }

  status(): ReplicaStatus {
    const { state, position } = this.#leader;
    const { serverId } = this.#options;
    return {
      serverId,
      role: 'leading',
      position,
      logIndex: position.index,
      leader: serverId,
      connected: true,
      leading: this.#leader.isLeading,
      configVersion: state.configVersion,
      config: state.config,
      sessions: state.sessions.size,
      held: state.holds,
      waiting: state.waits,
      names: state.locks.size,
      clients: this.frontEnd.clients,
      lastToken: state.lastToken,
      problem: '',
    };
  }

  /** Figures for /metrics. */
  gauges(): ServerGauges {
    return gaugesOf(this.#leader.state, this.#leader.sizes);
  }

  /** Committed history from an index on, by replay; then ends. Throws TrimmedError below the start of the log. */
  history(fromIndex: number): AsyncIterable<HistoryEntry> {
    const { log, runtime } = this.#options;
    return history(unhurried(log, runtime.timers), fromIndex);
  }

  /** Calls back for every later commit, until the returned function is called. */
  watch(watcher: Watcher): () => void {
    return this.#watchers.add(watcher);
  }

  /** Hands over and closes the log. */
  async stop(): Promise<void> {
    await this.#leader.stop();
    this.frontEnd.setLeader(null);
    this.frontEnd.close();
    await this.#options.log.close();
  }
}
