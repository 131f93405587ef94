/**
 * Loads of single operations: at a fixed rate on distinct names, and workers that queue for one name.
 */
import { Client, type Connect } from '../client.ts';
import { closedLoop, type OpenLoopOptions, openLoop, type Summary, summarise } from '../measure.ts';

/**
 * Distinct names at a fixed rate. Releases follow their acquires, so only acquires have a planned start; both count as
 * operations.
 */
export async function uncontended(
  streams: readonly Connect[],
  { perSecond, ...duration }: OpenLoopOptions,
): Promise<Summary> {
  const clients = await Promise.all(streams.map((connect) => Client.open(connect)));
  const gates = clients.map(() => new Gate(UNDER_WAY_MAX));
  const held: Promise<void>[] = [];
  const acquire = async (turn: number): Promise<void> => {
    const at = turn % clients.length;
    const client = clients[at] as Client;
    const gate = gates[at] as Gate;
    await gate.enter();
    const token = await client.acquire(`n-${turn}`);
    held.push(client.release(`n-${turn}`, token).then(() => gate.leave()));
  };
  const acquires = await openLoop({ perSecond: perSecond / 2, ...duration }, acquire);
  await Promise.all(held);
  await Promise.all(clients.map((client) => client.close()));
  return { ...acquires, operations: 2 * acquires.operations, perSecond: 2 * acquires.perSecond };
}

/** Locks of one session that are being taken or given back: beyond 256 the group refuses (rule C5). */
const UNDER_WAY_MAX = 100;

/** Lets so many in at once, the others in the order they came. */
class Gate {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(places: number) {
    this.#free = places;
  }

  async enter(): Promise<void> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

export interface HandOvers extends Summary {
  /** All of them; what the rest of the summary says leaves out the warm-up, and those at the end when no worker queues again. */
  readonly operations: number;
  /** p99 of the wait over its mean: 1 = perfectly fair. */
  readonly unfairness: number;
}

/** Until all workers have queued once the queue is short, and code is being compiled; what is asked for is the steady state. */
const WARM_UP_SECONDS = 2;

/**
 * Workers, each with its own stream, that queue for one name: an operation is one hand-over, its latency the wait. A worker queues again at
 * once, without waiting to hear that its release is done: one frame carries both, so that a hand-over is one entry.
 */
export async function oneName(streams: readonly Connect[], seconds: number): Promise<HandOvers> {
  const clients = await Promise.all(streams.map((connect) => Client.open(connect)));
  const waitsMs: number[] = [];
  const countedFromMs = performance.now() + WARM_UP_SECONDS * 1000;
  const released: Promise<void>[] = clients.map(() => Promise.resolve());
  const duration = { workers: clients.length, seconds: WARM_UP_SECONDS + seconds };
  const { operations } = await closedLoop(duration, async (worker) => {
    const client = clients[worker] as Client;
    const askedMs = performance.now();
    const [token] = await Promise.all([client.acquire('the-one', 600_000), released[worker]]);
    const now = performance.now();
    if (now >= countedFromMs && now < countedFromMs + seconds * 1000) waitsMs.push(now - askedMs);
    released[worker] = client.release('the-one', token);
  });
  await Promise.all(released);
  await Promise.all(clients.map((client) => client.close()));
  const waits = summarise(waitsMs, seconds);
  const meanMs = waitsMs.reduce((sum, ms) => sum + ms, 0) / Math.max(1, waitsMs.length);
  return { ...waits, operations, unfairness: waits.p99Ms / meanMs };
}
