/**
 * Reads that must never show the past: one session takes and gives back a lock all the while, and through every other front end the lock is
 * read; whoever has it then has a token not below the newest that was acknowledged before the read began.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { LeaseholdError } from '../../../src/api/errors.ts';
import { ALIAS } from './group-bench.ts';
import type { GroupClients } from './group-clients.ts';

const NAME = 'read-all-the-while';
const HOLD_MS = 20;
const READ_EVERY_MS = 15;

export class ReadWatch {
  readonly #clients: GroupClients;
  readonly #running: Promise<void>[];
  /** What was shown of the past, and calls that failed in a way that an outage does not explain. */
  readonly past: string[] = [];
  #isEnding = false;
  /** Acknowledged to its holder. */
  #newest = 0;
  #reads = 0;

  private constructor(clients: GroupClients, session: string) {
    this.#clients = clients;
    this.#running = [this.#take(session), ...clients.sidecars.map((_, sidecar) => this.#read(sidecar))];
  }

  static async start(clients: GroupClients): Promise<ReadWatch> {
    return new ReadWatch(clients, await clients.open(0, 'read-watch'));
  }

  /** Those seen so far; after some more reads, so that the silence of a group that answers nothing is none. */
  async pastReads(): Promise<readonly string[]> {
    const before = this.#reads;
    while (this.#reads < before + 2 * this.#clients.sidecars.length && this.past.length === 0)
      await pause(20);
    return this.past;
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await Promise.allSettled(this.#running);
  }

  async #take(session: string): Promise<void> {
    while (!this.#isEnding) {
      await this.#unlessAway(async () => {
        const { token } = await this.#clients.acquire(0, session, NAME);
        this.#newest = token;
        await pause(HOLD_MS);
        await this.#clients.release(0, session, { name: NAME, token });
      });
    }
  }

  async #read(sidecar: number): Promise<void> {
    while (!this.#isEnding) {
      await pause(READ_EVERY_MS);
      await this.#unlessAway(async () => {
        const least = this.#newest;
        const view = await this.#clients.sidecars[sidecar]?.getLock(`${ALIAS}/${NAME}`);
        const token = view?.holders[0]?.token ?? least;
        if (token < least) this.past.push(`sidecar ${sidecar} was shown ${token} after ${least} was granted`);
        this.#reads++;
      });
    }
  }

  async #unlessAway(call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (!(error instanceof LeaseholdError && error.code === 'UNAVAILABLE') && !this.#isEnding)
        this.past.push(String(error));
      await pause(READ_EVERY_MS);
    }
  }
}
