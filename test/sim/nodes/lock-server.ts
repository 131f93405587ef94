/**
 * One lock server process of a group: the shipped Replica on the memory engine. It can be killed at any moment and started
 * again; what it leaves behind is its log's store.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import { LogUnavailableError } from '../../../src/log/errors.ts';
import { DeposedError } from '../../../src/log/port.ts';
import { Replica } from '../../../src/server/member/replica.ts';
import type { Poison } from '../faults/poison.ts';
import type { Findings } from '../judge/findings.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Plan } from '../plan.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import { WatchedLog, type WatchedStore } from './watched-log.ts';

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
  readonly poison: Poison;
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
    const { store, judge, plan, poison, config, onStall, onGaveUp } = this.#options;
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
        probe: poison.probe(life),
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
