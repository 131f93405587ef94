/** Applications that work under locks while the server is killed: with calls, with a stream, with one lock at a time. */
import { setTimeout as pause } from 'node:timers/promises';
import { EventStream } from '../../support/dev/lock-api.ts';
import { Application, type Caller, isLostAnswer, lookAt, RETRY_MS, release } from './application.ts';
import type { KnownGrant } from './ledger.ts';

/** Requests of grants that are over, kept to be repeated some time. */
const OLD_REQUESTS_MAX = 5;
const REPEAT_SHARE = 0.2;

export interface WorkerOptions {
  readonly names: readonly string[];
  readonly waitsMs: readonly number[];
  readonly holdMsMax: number;
  /** Share of holds that last over the next kill. */
  readonly keepsShare: number;
}

interface OldRequest {
  readonly name: string;
  readonly request: string;
  readonly token: number;
}

/** Takes and gives back contested locks, repeats requests it has had answers to, and keeps some locks over kills. */
export class Worker extends Application {
  protected readonly keepalive: 'app' | 'stream' | 'both' = 'app';
  readonly #options: WorkerOptions;
  readonly #old: OldRequest[] = [];

  constructor(caller: Caller, options: WorkerOptions) {
    super(caller);
    this.#options = options;
  }

  /** Resolves when it has done what keeps its session alive after a restart. */
  settled(): Promise<void> {
    return Promise.resolve();
  }

  protected async work(): Promise<void> {
    const { random } = this.caller;
    const { names, waitsMs } = this.#options;
    while (!this.isEnding) {
      const request = this.newRequest();
      const grant = await this.acquire(random.pick(names), request, random.pick(waitsMs));
      if (grant === null) await pause(random.between(5, 40));
      else await this.#hold(grant, request);
      if (random.chance(REPEAT_SHARE)) await this.#repeatOld();
    }
    while (this.#old.length > 0 && !this.isOver) await this.#repeatOld();
  }

  async #hold(grant: KnownGrant, request: string): Promise<void> {
    const { caller } = this;
    const { random } = caller;
    if (random.chance(this.#options.keepsShare)) {
      await caller.untilNextLife();
      await this.settled();
      await lookAt(caller, grant);
      await this.#repeatHeld(grant, request);
    } else {
      await pause(random.int(this.#options.holdMsMax + 1));
      if (random.chance(REPEAT_SHARE)) await lookAt(caller, grant);
      if (random.chance(REPEAT_SHARE)) await this.#repeatHeld(grant, request);
    }
    await release(caller, grant);
    if (grant.state === 'released' && this.#old.length < OLD_REQUESTS_MAX) {
      this.#old.push({ name: grant.name, request, token: grant.token });
    }
  }

  /** Rule C4: the token, while it is held. */
  async #repeatHeld({ name, token }: KnownGrant, request: string): Promise<void> {
    const answer = await this.ask(name, request, 0);
    if (answer === null || (answer.status === 200 && answer.body.token === token)) return;
    const told = JSON.stringify(answer.body);
    this.caller.load.ledger.violation(`request ${request}, held with token ${token}, repeated: ${told}`);
  }

  /** Rule C4: after its end, what ended it; never a second grant. */
  async #repeatOld(): Promise<void> {
    const { caller } = this;
    const [old] = this.#old.splice(caller.random.int(Math.max(1, this.#old.length)), 1);
    if (old === undefined) return;
    const { name, request, token } = old;
    const answer = await this.ask(name, request, 0);
    if (answer === null || answer.body.code === 'NOT_HELD') return;
    const { ledger } = caller.load;
    ledger.violation(`request ${request}, given back with token ${token}: ${JSON.stringify(answer.body)}`);
    if (answer.status !== 200) return;
    const second = { client: caller.name, name, session: this.session, token: Number(answer.body.token) };
    await release(caller, ledger.granted(second));
  }
}

/** A worker whose life shows by its open stream: it breaks with every kill and is opened again at once. */
export class StreamWorker extends Worker {
  protected override readonly keepalive: 'stream' | 'both';
  #opened = Promise.withResolvers<void>();
  #isClosing = false;

  constructor(caller: Caller, options: WorkerOptions, keepalive: 'stream' | 'both') {
    super(caller, options);
    this.keepalive = keepalive;
  }

  override settled(): Promise<void> {
    return this.#opened.promise;
  }

  protected override async work(): Promise<void> {
    const streaming = this.#stream();
    await this.settled();
    await super.work();
    this.#isClosing = true;
    const { api } = this.caller;
    await this.caller.insist('open', () => api.close(this.session));
    await streaming;
  }

  protected override async keepAlive(): Promise<void> {
    if (this.keepalive === 'both') await super.keepAlive();
  }

  async #stream(): Promise<void> {
    const { caller } = this;
    while (!this.#isClosing) {
      try {
        const stream = await EventStream.open(caller.api.client, this.session);
        this.#opened.resolve();
        await stream.ended;
        this.#opened = Promise.withResolvers();
        for (const line of stream.lines) this.#judge(line.event, JSON.stringify(line));
      } catch (error) {
        if (!isLostAnswer(error) && !this.#isClosing) {
          this.over(`its stream: ${String(error)}`);
          break;
        }
        await pause(RETRY_MS);
      }
    }
    this.#opened.resolve();
  }

  #judge(event: string, line: string): void {
    if (event === 'queued' || event === 'granted' || (event === 'session_lost' && this.#isClosing)) return;
    this.caller.load.ledger.violation(`${this.caller.name} was told on its stream: ${line}`);
  }
}

/**
 * Hangs up while its acquires are under way. Between answer and hang-up, and between both and a kill, there is no telling who
 * was first: it asks again with the same `request`, and gives back what it finds.
 */
export class Leaver extends Application {
  protected readonly keepalive = 'app';
  readonly #names: readonly string[];

  constructor(caller: Caller, names: readonly string[]) {
    super(caller);
    this.#names = names;
  }

  protected async work(): Promise<void> {
    while (!this.isEnding) await this.#leave(this.caller.random.pick(this.#names));
  }

  async #leave(name: string): Promise<void> {
    const { caller, session } = this;
    const { api, random, load } = caller;
    const request = this.newRequest();
    const hangUp = new AbortController();
    const body = { session_id: session, wait_ms: random.pick([0, 60_000]), purpose: request, request };
    const asked = api.acquire(name, body, hangUp.signal).catch(() => null);
    await pause(random.int(30));
    hangUp.abort();
    const answer = await asked;
    const grant =
      answer?.status === 200
        ? load.ledger.granted({ client: caller.name, name, session, token: Number(answer.body.token) })
        : await this.acquire(name, request, 0);
    if (grant !== null) await release(caller, grant);
  }
}

/** Locks without a session of its own: each acquire opens one, which goes with the lock. */
export async function lockOneByOne(caller: Caller, names: readonly string[]): Promise<void> {
  const { api, load, random } = caller;
  while (!load.ending.aborted) {
    const name = random.pick(names);
    const body = { client: caller.name, ttl_s: load.ttlMs / 1000 };
    const answer = await caller.insist('acquire', () => api.acquire(name, body));
    if (answer.status !== 200) {
      // Held by an acquire whose answer was lost: nobody renews it, so it is free within one TTL.
      await pause(random.between(20, 100));
      continue;
    }
    const session = String(answer.body.session_id);
    const token = Number(answer.body.token);
    const grant = load.ledger.granted({ client: caller.name, name, session, token });
    if (random.chance(0.3)) await caller.untilNextLife();
    else await pause(random.int(300));
    await lookAt(caller, grant);
    await release(caller, grant);
  }
  api.end();
}
