/**
 * One lock server process of a group: the shipped Replica on the memory engine. It can be killed at any moment and started
 * again; what it leaves behind is its log's store.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import { LogUnavailableError } from '../../../src/log/errors.ts';
import { MemoryLog } from '../../../src/log/memory-log.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import {
  type AppendOutcome,
  DeposedError,
  type Leadership,
  type StoredEntry,
} from '../../../src/log/port.ts';
import { Replica } from '../../../src/server/replica.ts';
import type { Findings } from '../judge/findings.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Plan } from '../plan.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { US_PER_MS } from '../world/world.ts';

/** An append that takes longer counts as a stall of the leader, which spares sessions for a while (rule S6). */
const STALL_MS = 400;

/** Tells the judge of every entry in the moment in which it becomes durable. */
export class WatchedStore extends MemoryStore {
  judge: GroupJudge | null = null;

  override append(leadership: Leadership, entry: StoredEntry): AppendOutcome {
    const before = this.head().index;
    const outcome = super.append(leadership, entry);
    if (this.head().index > before) this.judge?.durable(entry);
    return outcome;
  }
}

/** Tells the judge when an entry is sent for the first time, and of appends that took long. */
class WatchedLog extends MemoryLog {
  readonly #life: Life;
  readonly #judge: GroupJudge;
  readonly #onStall: (fromUs: number) => void;

  constructor(
    store: WatchedStore,
    faults: ConstructorParameters<typeof MemoryLog>[1],
    watch: { readonly life: Life; readonly judge: GroupJudge; readonly onStall: (fromUs: number) => void },
  ) {
    super(store, faults);
    this.#life = watch.life;
    this.#judge = watch.judge;
    this.#onStall = watch.onStall;
  }

  override async append(leadership: Leadership, entry: StoredEntry): Promise<AppendOutcome> {
    const { world } = this.#life.process;
    const fromUs = world.nowUs;
    this.#judge.built(this.#life, entry);
    const outcome = await super.append(leadership, entry);
    if (world.nowUs - fromUs > STALL_MS * US_PER_MS) this.#onStall(fromUs);
    return outcome;
  }

  override async campaign(serverId: string): Promise<Leadership> {
    const leadership = await super.campaign(serverId);
    this.#judge.epochLed(leadership.epoch, serverId);
    return leadership;
  }
}

/** Why a server may end by itself: its log was taken over, or does not answer. */
function isExpected(why: unknown): boolean {
  if (why === 'deposed' || why instanceof LogUnavailableError || why instanceof DeposedError) return true;
  // Deposed before it could serve.
  return why instanceof Error && why.message === 'this server has stopped leading';
}

export interface LockServerOptions {
  readonly process: VirtualProcess;
  readonly store: WatchedStore;
  readonly judge: GroupJudge;
  readonly plan: Plan;
  readonly findings: Findings;
  readonly config: () => NamespaceConfig | null;
  readonly onStall: (fromUs: number) => void;
  /** It has given up by itself; whoever runs it should kill it and start it again. */
  readonly onGaveUp: (server: LockServer) => void;
}

export class LockServer {
  readonly process: VirtualProcess;
  readonly #options: LockServerOptions;
  #log: WatchedLog | null = null;
  #replica: Replica | null = null;
  #slowMs = 0;
  #isOutage = false;

  constructor(options: LockServerOptions) {
    this.#options = options;
    this.process = options.process;
  }

  /** Null while it starts, and when it does not run. */
  get replica(): Replica | null {
    return this.#replica;
  }

  /** In a life of its own, or in one it shares with the sidecar. Resolves when it serves; never, when it fails to. */
  async start(life: Life = this.process.start()): Promise<void> {
    const { store, judge, plan, config, onStall, onGaveUp } = this.#options;
    const { from, to } = plan.logLatencyMs;
    const { timers, random, clock } = life.runtime;
    const log = new WatchedLog(
      store,
      {
        timers,
        random,
        latencyMs: (drawn) => this.#slowMs + from + (to - from) * drawn.fraction() ** 3,
        unknownOutcomes: plan.unknownOutcomes,
      },
      { life, judge, onStall },
    );
    log.setOutage(this.#isOutage);
    this.#log = log;
    const gaveUp = (why: unknown): void => {
      if (life.isOver) return;
      this.process.world.trace?.(`${this.process.name} gives up: ${String(why)}`);
      if (!isExpected(why)) {
        const text = why instanceof Error ? `${why.name}: ${why.message}` : String(why);
        this.#options.findings.add('server-failed', `${this.process.name} cannot go on: ${text}`);
      }
      this.#replica = null;
      onGaveUp(this);
    };
    try {
      const replica = await Replica.start({
        runtime: life.runtime,
        log,
        serverId: `${this.process.name} at ${Math.round(clock.monotonicMs())}`,
        config: config(),
        onCommitted: (entry) => judge.reported(entry),
        onStopped: (reason) => gaveUp(reason.kind === 'failed' ? reason.error : reason.kind),
        ...(plan.snapshotDueBytes === undefined ? {} : { snapshotDueBytes: plan.snapshotDueBytes }),
      });
      if (life.isOver) return;
      this.#replica = replica;
      this.process.world.trace?.(`${this.process.name} serves`);
    } catch (error) {
      gaveUp(error);
      await new Promise(() => undefined);
    }
  }

  kill(): void {
    this.#log?.crash();
    this.#log = null;
    this.#replica = null;
    this.process.kill();
  }

  /** The storage gives no answers, whatever process asks. */
  setOutage(outage: boolean): void {
    this.#isOutage = outage;
    this.#log?.setOutage(outage);
  }

  /** Every call to the log takes so much longer. */
  setSlow(slowMs: number): void {
    this.#slowMs = slowMs;
  }
}
