/**
 * Asks for a lock of another name every 20 ms, whether or not earlier ones are answered, and remembers when each was had: what shows
 * for how long nothing is granted.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Client, connectTo } from './client.ts';
import { atEnd } from './endings.ts';

const EVERY_MS = 20;
const KEEPALIVE_MS = 3_000;
const GRANT_MS_MAX = 30_000;
const POLL_MS = 5;

interface Asked {
  readonly plannedMs: number;
  hadMs: number | null;
}

export class Probe implements AsyncDisposable {
  readonly #endpoints: readonly string[];
  readonly #clients = new Map<string, Client>();
  readonly #ending: AsyncDisposable;
  /** Front ends asked now, in turn. */
  #through: readonly string[] = [];
  #asked: Asked[] = [];
  #turns = 0;

  constructor(endpoints: readonly string[]) {
    this.#endpoints = endpoints;
    const startedMs = Date.now();
    const asking = setInterval(() => {
      const due = Math.floor((Date.now() - startedMs) / EVERY_MS);
      for (; this.#turns < due; this.#turns++) this.#ask(startedMs + (this.#turns + 1) * EVERY_MS);
    }, POLL_MS);
    const keeping = setInterval(() => {
      for (const client of this.#clients.values()) if (!client.isClosed) void client.keepalive();
    }, KEEPALIVE_MS);
    this.#ending = atEnd(() => {
      clearInterval(asking);
      clearInterval(keeping);
    });
  }

  /** From now on asks through these servers, by place. */
  async through(places: readonly number[]): Promise<void> {
    this.#through = [];
    const wanted = places.map((at) => this.#endpoints[at] as string);
    for (const endpoint of wanted) {
      if (this.#clients.get(endpoint)?.isClosed !== false) {
        this.#clients.set(endpoint, await Client.open(connectTo(endpoint)));
      }
    }
    this.#asked = [];
    this.#through = wanted;
  }

  /** How long after `sinceMs` (of the wall clock) the first lock was had that was asked for after it. */
  async firstAfter(sinceMs: number): Promise<number> {
    const deadline = Date.now() + GRANT_MS_MAX;
    while (Date.now() < deadline) {
      const had = this.#asked
        .filter(({ plannedMs }) => plannedMs >= sinceMs)
        .flatMap(({ hadMs }) => hadMs ?? []);
      if (had.length > 0) return Math.min(...had) - sinceMs;
      await pause(POLL_MS);
    }
    throw new Error('nothing is granted any more');
  }

  /** The longest that a lock took that was asked for from `sinceMs` to now. */
  async longestSince(sinceMs: number): Promise<number> {
    const asked = this.#asked.filter(({ plannedMs }) => plannedMs >= sinceMs);
    const deadline = Date.now() + GRANT_MS_MAX;
    while (asked.some(({ hadMs }) => hadMs === null)) {
      if (Date.now() > deadline) throw new Error('nothing is granted any more');
      await pause(POLL_MS);
    }
    return Math.max(0, ...asked.map(({ plannedMs, hadMs }) => (hadMs ?? 0) - plannedMs));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#ending[Symbol.asyncDispose]());
  }

  #ask(plannedMs: number): void {
    const turn = this.#turns;
    const client = this.#clients.get(this.#through[turn % Math.max(1, this.#through.length)] ?? '');
    if (client === undefined || client.isClosed) return;
    const asked: Asked = { plannedMs, hadMs: null };
    this.#asked.push(asked);
    const name = `probe-${turn}`;
    client
      .acquire(name)
      .then((token) => {
        asked.hadMs = Date.now();
        return client.release(name, token);
      })
      // Refused while nobody leads: it shows as an operation that was not granted.
      .catch(() => undefined);
  }
}
