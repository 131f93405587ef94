/**
 * Applications on a lock group: sidecars in the test's own process, each beginning on another front end, with sessions that hold locks over
 * everything and sessions that pass one lock from hand to hand.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { LeaseholdError } from '../../../src/api/errors.ts';
import { createMetrics } from '../../../src/platform/prometheus.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import { loadProtocol } from '../../../src/server/grpc/proto.ts';
import { connectMethod } from '../../../src/server/grpc/streams.ts';
import { grpcConnect } from '../../../src/sidecar/grpc-connect.ts';
import type { Granted } from '../../../src/sidecar/service.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { MemoryStateStore } from '../../../src/sidecar/state-store.ts';
import { ALIAS, type GroupBench } from './group-bench.ts';

const TTL_MS_DEFAULT = 15_000;
const KEEPALIVE_MS = 1_000;
const HOT_HOLD_MS = 15;
const HOT_WAIT_MS = 60_000;
const ACQUIRE = { mode: 'exclusive', permits: 1, reentrant: false, purpose: '' } as const;

/** A grant as its application was told of it. */
export interface ToldGrant {
  readonly name: string;
  readonly token: number;
}

const method = connectMethod(loadProtocol());

export interface ClientsOptions {
  readonly ttlMs?: number;
  /** How each sidecar reaches the front ends; left out: straight. */
  readonly endpoints?: readonly (readonly string[])[];
}

export class GroupClients {
  /** One for each front end, in the order of the endpoints. */
  readonly sidecars: readonly Sidecar[];
  /** Of every acquire that was acknowledged; `name` without the alias. */
  readonly told: ToldGrant[] = [];
  /** Held since they were granted. */
  readonly kept: { readonly sidecar: number; readonly sessionId: string; readonly grant: ToldGrant }[] = [];
  /** What must not happen. */
  readonly complaints: string[] = [];
  hotGrants = 0;
  /** Streams that each sidecar has opened. */
  readonly connects: number[];
  /** Breaks the stream of each. */
  readonly #cuts: (() => void)[] = [];
  readonly #ttlMs: number;
  readonly #ending = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor({ group }: GroupBench, { ttlMs = TTL_MS_DEFAULT, endpoints: ways }: ClientsOptions = {}) {
    const { endpoints: straight } = group.plan;
    const endpointsOf = ways ?? straight.map(() => straight);
    this.#ttlMs = ttlMs;
    const runtime = createSystemRuntime({ logLevel: 'silent' });
    this.connects = endpointsOf.map(() => 0);
    this.sidecars = endpointsOf.map((endpoints, first) => {
      const connect = grpcConnect({
        method,
        runtime,
        endpoints,
        first,
      });
      const sidecar = new Sidecar({ runtime, store: new MemoryStateStore() });
      sidecar.addNamespace({
        alias: ALIAS,
        connect: (handler) => {
          this.connects[first] = (this.connects[first] ?? 0) + 1;
          const stream = connect(handler);
          this.#cuts[first] = () => {
            stream.close();
            handler.onClose();
          };
          return stream;
        },
        metrics: createMetrics().sidecar(ALIAS),
        defaults: () => ({ ttlMs, maxHoldMs: 3_600_000 }),
      });
      return sidecar;
    });
  }

  /** Place of the front end that a sidecar is on, or tries. */
  frontEndOf(sidecar: number): number {
    return (sidecar + (this.connects[sidecar] as number) - 1) % this.sidecars.length;
  }

  /** Brings each sidecar to the front end of its own number, over as many streams as that takes. */
  async spread(): Promise<void> {
    for (const at of this.sidecars.keys()) {
      while (this.frontEndOf(at) !== at) {
        const before = this.connects[at];
        this.#cuts[at]?.();
        while (this.connects[at] === before) await pause(10);
      }
    }
  }

  /** So many sessions, spread over the front ends, each with two locks that it keeps. */
  async keep(sessions: number): Promise<void> {
    await Promise.all(
      Array.from({ length: sessions }, async (_, at) => {
        const sidecar = at % this.sidecars.length;
        const sessionId = await this.open(sidecar, `keeper-${at}`);
        for (const name of [`kept-${at}/0`, `kept-${at}/1`]) {
          const { token } = await this.acquire(sidecar, sessionId, name);
          this.kept.push({ sidecar, sessionId, grant: { name, token } });
        }
      }),
    );
  }

  /** So many sessions that wait for one lock, hold it for a moment, and queue up again. */
  async passHot(sessions: number): Promise<void> {
    for (let at = 0; at < sessions; at++) {
      const sidecar = at % this.sidecars.length;
      const sessionId = await this.open(sidecar, `hot-${at}`);
      this.#running.push(this.#pass(sidecar, sessionId));
    }
  }

  async open(sidecar: number, client: string): Promise<string> {
    const { sessionId } = await this.#of(sidecar).openSession({
      client,
      ttlMs: this.#ttlMs,
      keepalive: 'app',
    });
    this.#running.push(this.#keepAlive(sidecar, sessionId));
    return sessionId;
  }

  /** Again while the service is unavailable, as an application would. */
  async acquire(sidecar: number, sessionId: string, name: string, waitMs = 10_000): Promise<Granted> {
    for (;;) {
      try {
        const hangUp = new AbortController().signal;
        const granted = await this.#of(sidecar).acquire(`${ALIAS}/${name}`, {
          ...ACQUIRE,
          sessionId,
          waitMs,
          hangUp,
        });
        this.told.push({ name, token: granted.token });
        return granted;
      } catch (error) {
        const isOutage = error instanceof LeaseholdError && error.code === 'UNAVAILABLE';
        if (!isOutage || this.#ending.signal.aborted) throw error;
        await pause(20);
      }
    }
  }

  /** One try in a session of its own; null: granted. */
  async refusal(sidecar: number, name: string): Promise<LeaseholdError | null> {
    try {
      const hangUp = new AbortController().signal;
      await this.#of(sidecar).acquire(`${ALIAS}/${name}`, { ...ACQUIRE, client: 'once', waitMs: 0, hangUp });
      return null;
    } catch (error) {
      if (error instanceof LeaseholdError) return error;
      throw error;
    }
  }

  async release(sidecar: number, sessionId: string, { name, token }: ToldGrant): Promise<void> {
    await this.#of(sidecar).release(`${ALIAS}/${name}`, { sessionId, token });
  }

  /** What is wrong with the locks that are kept: each must be held still, under its token, here and by the group. */
  async lost(): Promise<readonly string[]> {
    const views = await this.#keptViews();
    return views.filter(({ isHeld, isStored }) => !isHeld || !isStored).map(({ says }) => says);
  }

  /** Locks that are kept of which sidecar and group do not say the same: each is held still, or its application was told and it is free. */
  async disputed(): Promise<readonly string[]> {
    const views = await this.#keptViews();
    return views.filter(({ isHeld, isStored }) => isHeld !== isStored).map(({ says }) => says);
  }

  /** Ends the load; sessions are left to close in order. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.allSettled(this.#running);
    for (const sidecar of this.sidecars) sidecar.stop();
  }

  async #keptViews() {
    return Promise.all(
      this.kept.map(async ({ sidecar, grant: { name, token } }) => {
        const isHeld = this.#of(sidecar).held(`${ALIAS}/${name}`, token).held;
        const view = await this.#of(sidecar).getLock(`${ALIAS}/${name}`);
        const stored = view.holders[0]?.token ?? null;
        const says = `${name}: ${token} is held: ${isHeld}; the group has ${stored}`;
        return { isHeld, isStored: stored === token, says };
      }),
    );
  }

  #of(sidecar: number): Sidecar {
    return this.sidecars[sidecar] as Sidecar;
  }

  async #keepAlive(sidecar: number, sessionId: string): Promise<void> {
    while (!this.#ending.signal.aborted) {
      await pause(KEEPALIVE_MS, undefined, { signal: this.#ending.signal }).catch(() => undefined);
      try {
        await this.#of(sidecar).keepaliveSession(sessionId);
      } catch (error) {
        this.complaints.push(`a session on sidecar ${sidecar} was lost: ${String(error)}`);
        return;
      }
    }
  }

  async #pass(sidecar: number, sessionId: string): Promise<void> {
    while (!this.#ending.signal.aborted) {
      try {
        const { token } = await this.acquire(sidecar, sessionId, 'hot', HOT_WAIT_MS);
        this.hotGrants++;
        await pause(HOT_HOLD_MS);
        await this.release(sidecar, sessionId, { name: 'hot', token });
      } catch (error) {
        const isOutage = error instanceof LeaseholdError && error.code === 'UNAVAILABLE';
        if (isOutage || this.#ending.signal.aborted) continue;
        this.complaints.push(`the hot lock on sidecar ${sidecar}: ${String(error)}`);
        return;
      }
    }
  }
}
