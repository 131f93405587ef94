/**
 * The memory engine: LockLog on a MemoryStore, for the simulator, benches and tests. Without `faults` every call is answered in
 * microtasks and uses no timer. With them each call travels: it reaches the store at a random moment of its latency and is answered at
 * the end of it, so that a deposed leader may still hear "committed" and a crash leaves open what happened. Given the same ports it
 * behaves the same.
 */

import { pause } from '../platform/pause.ts';
import type { Random, Timer, Timers } from '../platform/runtime.ts';
import { LogUnavailableError } from './errors.ts';
import type { MemoryStore } from './memory-store.ts';
import { invoke, type StoreArguments, type StoreCaller, type StoreMethod, type StoreReply } from './store.ts';
import { StoreLog } from './store-log.ts';

export interface MemoryLogFaults {
  readonly timers: Timers;
  readonly random: Random;
  /** Latency of one call in ms, drawn per call. */
  readonly latencyMs: (random: Random) => number;
  /** Share of calls, 0 to 1, whose answer is lost; half of these reach the store. Such calls are repeated (rule L2). */
  readonly unknownOutcomes?: number;
}

export class MemoryLog extends StoreLog {
  readonly #travelling: TravellingCaller | undefined;

  constructor(store: MemoryStore, faults?: MemoryLogFaults) {
    const travelling = faults === undefined ? undefined : new TravellingCaller(store, faults);
    super(store.lineage, travelling ?? new DirectCaller(store), {
      pause: faults === undefined ? () => Promise.resolve() : (delayMs) => pause(faults.timers, delayMs),
      newId: faults === undefined ? () => nextSnapshotId(store) : () => faults.random.hex(16),
    });
    this.#travelling = travelling;
  }

  /** The process dies: each call under way reached the store or did not, and no promise of this handle settles any more. */
  crash(): void {
    if (this.#travelling === undefined) throw new Error('only a log with faults can crash');
    this.#travelling.crash();
  }

  /** While true no call gets an answer, and after its tries is told LogUnavailableError (rule S11). */
  setOutage(outage: boolean): void {
    if (this.#travelling === undefined) throw new Error('only a log with faults has outages');
    this.#travelling.outage = outage;
  }
}

/** Unique in its store, which is all that is asked of it where nothing is random. */
function nextSnapshotId(store: MemoryStore): string {
  return `snapshot-${store.takeSerial()}`;
}

class DirectCaller implements StoreCaller {
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    try {
      return Promise.resolve(invoke(this.#store, method, args));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

interface Travelling {
  /** Lets the call take effect in the store; undefined once it has, or never will. */
  reach: (() => void) | undefined;
  timer: Timer | undefined;
}

class TravellingCaller implements StoreCaller {
  readonly #store: MemoryStore;
  readonly #faults: MemoryLogFaults;
  readonly #underWay = new Set<Travelling>();
  #crashed = false;
  outage = false;

  constructor(store: MemoryStore, faults: MemoryLogFaults) {
    this.#store = store;
    this.#faults = faults;
  }

  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    return new Promise((resolve, reject) => {
      if (this.#crashed) return;
      const { timers, random } = this.#faults;
      const latencyMs = Math.max(0, this.#faults.latencyMs(random));
      const reachMs = latencyMs * random.fraction();
      const lost = this.#drawLoss();
      // Made when it is needed: most calls are answered, and an error with its stack costs more than the call.
      const giveUp = (): void => reject(new LogUnavailableError(`the answer to ${method} was lost`));
      let answer = giveUp;
      const travelling: Travelling = { reach: undefined, timer: undefined };
      travelling.reach = () => {
        try {
          const reply = invoke(this.#store, method, args);
          if (lost === 'no') answer = () => resolve(reply);
        } catch (error) {
          if (lost === 'no') answer = () => reject(error);
        }
      };
      this.#underWay.add(travelling);
      travelling.timer = timers.after(reachMs, () => {
        if (lost !== 'request' && !this.outage) travelling.reach?.();
        travelling.reach = undefined;
        travelling.timer = timers.after(latencyMs - reachMs, () => {
          this.#underWay.delete(travelling);
          if (this.outage) giveUp();
          else answer();
        });
      });
    });
  }

  crash(): void {
    this.#crashed = true;
    for (const travelling of this.#underWay) {
      travelling.timer?.cancel();
      if (!this.outage && this.#faults.random.fraction() < 0.5) travelling.reach?.();
    }
    this.#underWay.clear();
  }

  /** Waits for nothing: what is under way stays under way and is answered. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  #drawLoss(): 'no' | 'request' | 'answer' {
    const share = this.#faults.unknownOutcomes ?? 0;
    const drawn = this.#faults.random.fraction();
    if (drawn >= share) return 'no';
    return drawn < share / 2 ? 'request' : 'answer';
  }
}
