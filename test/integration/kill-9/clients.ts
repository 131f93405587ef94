/**
 * Applications under which the server is killed. Each does what the API's texts ask of it: it repeats a call whose answer
 * was lost with the same `request`, keeps its session alive, opens its stream again. So each may expect what is promised.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiAnswer, EventStream, type Held, LockApi } from '../../support/dev/lock-api.ts';
import type { Random } from '../../support/random.ts';
import type { KnownGrant, Ledger } from './ledger.ts';
import type { Lives, RequestKind } from './lives.ts';

const RETRY_MS = 25;
const KEEPALIVE_EVERY_MS = 1_000;
/** How long a repeated request may be told that its own earlier attempt is in the way. */
const OWN_WAY_MS_MAX = 3_000;
const MAX_HOLD_MS = 600_000;

export interface Shared {
  readonly lives: Lives;
  readonly ledger: Ledger;
  readonly alias: string;
  readonly ttlMs: number;
  /** Aborted when the load ends: waits are given up, loops end. */
  readonly ending: AbortSignal;
}

export interface Answered extends ApiAnswer {
  /** How often it was sent; more than once: earlier answers were lost. */
  readonly tries: number;
}

/** Tells of each request, and repeats it until it is answered. */
export class Caller {
  readonly name: string;
  readonly api: LockApi;
  readonly shared: Shared;
  readonly random: Random;

  constructor(name: string, shared: Shared, random: Random) {
    this.name = name;
    this.shared = shared;
    this.random = random;
    this.api = new LockApi(shared.lives.port, shared.alias);
  }

  get isEnding(): boolean {
    return this.shared.ending.aborted;
  }

  /** The same call until it is answered: what a client must do whose answer was lost. */
  async insist(kind: RequestKind, call: () => Promise<ApiAnswer>): Promise<Answered> {
    const { lives } = this.shared;
    for (let tries = 1; ; tries++) {
      try {
        const answering = call();
        lives.moment(kind, 'sent');
        const answer = await answering;
        lives.moment(kind, 'answered');
        return { ...answer, tries };
      } catch (error) {
        if (!isLostAnswer(error)) throw error;
        await pause(RETRY_MS);
      }
    }
  }
}

/** The connection broke, was refused, or ended inside an answer. */
function isLostAnswer(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code !== 'ABORT_ERR';
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ABORT_ERR';
}

/** An application with a session of its own. */
export abstract class Application {
  readonly caller: Caller;
  session = '';
  openedAt = 0;
  #requests = 0;

  constructor(caller: Caller) {
    this.caller = caller;
  }

  protected abstract keepalive(): 'app' | 'stream' | 'both';

  /** What it does until the load ends; it has given everything up when this resolves. */
  protected abstract work(): Promise<void>;

  async run(): Promise<void> {
    await this.open();
    const { caller } = this;
    const keeping = this.keepAlive();
    await this.work();
    const { status, body } = await caller.insist('open', () => caller.api.close(this.session));
    if (status !== 200 && status !== 410) {
      caller.shared.ledger.violation(`${caller.name} could not close its session: ${JSON.stringify(body)}`);
    }
    await keeping;
    caller.api.end();
  }

  /** Resolves when this application has done what keeps its session alive after a restart. */
  settled(): Promise<void> {
    return Promise.resolve();
  }

  protected async open(): Promise<void> {
    const { caller } = this;
    const { ttlMs } = caller.shared;
    const keepalive = this.keepalive();
    const body = {
      client: caller.name,
      ttl_s: ttlMs / 1000,
      keepalive,
      ...(keepalive === 'app' ? {} : { max_hold_ms: MAX_HOLD_MS }),
    };
    const answer = await caller.insist('open', () => caller.api.client.post('/v1/sessions', body));
    if (answer.status !== 200) throw new Error(`no session: ${JSON.stringify(answer.body)}`);
    this.session = String(answer.body.session_id);
    this.openedAt = Date.now();
  }

  protected async keepAlive(): Promise<void> {
    const { caller } = this;
    while (!caller.isEnding) {
      await pause(KEEPALIVE_EVERY_MS, undefined, { signal: caller.shared.ending }).catch(() => undefined);
      if (caller.isEnding) return;
      const { status, body } = await caller.insist('keepalive', () => caller.api.keepalive(this.session));
      if (status !== 200) this.over(`keepalive: ${JSON.stringify(body)}`);
    }
  }

  protected over(why: string): void {
    this.caller.shared.ledger.sessionLost(this.caller.name, this.openedAt, why);
  }

  protected newRequest(): string {
    return `${this.caller.name}-${++this.#requests}`;
  }

  /** Null: refused, or the load ended while it waited. */
  protected async acquire(name: string, request: string, waitMs: number): Promise<KnownGrant | null> {
    const { caller } = this;
    const { ledger, ending } = caller.shared;
    const answer = await this.ask(name, request, waitMs, ending);
    if (answer === null) return null;
    if (answer.status === 200) {
      const token = Number(answer.body.token);
      return ledger.granted({ client: caller.name, name, session: this.session, token });
    }
    const fine = ['HELD', 'WAIT_TIMEOUT', 'CANCELLED', 'UNAVAILABLE'];
    if (answer.body.code === 'SESSION_EXPIRED') this.over(`acquire: ${JSON.stringify(answer.body)}`);
    else if (!fine.includes(String(answer.body.code))) {
      ledger.violation(`${caller.name}: acquire of ${name}: ${JSON.stringify(answer.body)}`);
    }
    return null;
  }

  /** Asks until the answer is about the lock, and not about an earlier attempt of this very request. */
  protected async ask(
    name: string,
    request: string,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<Answered | null> {
    const { caller } = this;
    const body = { session_id: this.session, request, owner: caller.name, purpose: request, wait_ms: waitMs };
    const start = performance.now();
    for (;;) {
      let answer: Answered;
      try {
        answer = await caller.insist('acquire', () => caller.api.acquire(name, body, signal));
      } catch (error) {
        if (isAbort(error)) return null;
        throw error;
      }
      const holder = answer.body.holder as { purpose?: string } | null | undefined;
      const isOwn = answer.status !== 200 && holder?.purpose === request;
      const isCancelling = answer.body.code === 'UNAVAILABLE';
      if (!isOwn && !isCancelling) return answer;
      if (performance.now() - start > OWN_WAY_MS_MAX + waitMs) {
        const told = JSON.stringify(answer.body);
        caller.shared.ledger.violation(`${caller.name}: request ${request} stands in its own way: ${told}`);
        return answer;
      }
      await pause(RETRY_MS);
    }
  }

  /** `/held` and `/renew` while it holds: both must say so. */
  protected async look(grant: KnownGrant): Promise<void> {
    await lookAt(this.caller, grant);
  }

  protected async release(grant: KnownGrant): Promise<void> {
    await releaseGrant(this.caller, grant);
  }
}

export async function lookAt(caller: Caller, grant: KnownGrant): Promise<void> {
  const { ledger } = caller.shared;
  const sentAt = Date.now();
  const renewed = await caller.insist('renew', () => caller.api.renew(grant));
  if (grant.state !== 'held') return;
  if (renewed.status !== 200 || renewed.body.token !== grant.token) {
    ledger.lost(grant, `renew: ${JSON.stringify(renewed.body)}`);
    return;
  }
  grant.seenHeldAt = sentAt;
}

/** Until it is known to be over, however often the answer is lost. */
export async function releaseGrant(caller: Caller, grant: KnownGrant): Promise<void> {
  const { ledger } = caller.shared;
  const held: Held = grant;
  ledger.givesUp(grant);
  for (;;) {
    const { status, body, tries } = await caller.insist('release', () => caller.api.release(held));
    if (status === 200) {
      ledger.released(grant);
      return;
    }
    // Not confirmed within five seconds: it goes on by itself, and may be asked for again.
    if (body.code === 'UNAVAILABLE') continue;
    const mayHaveEnded = tries > 1 && ['NOT_HELD', 'STALE_TOKEN', 'SESSION_EXPIRED'].includes(String(body.code));
    if (!mayHaveEnded && grant.state === 'givenUp') {
      ledger.violation(`${caller.name}: release of ${grant.name} (${grant.token}): ${JSON.stringify(body)}`);
    }
    return;
  }
}

export interface WorkerOptions {
  readonly names: readonly string[];
  readonly waitsMs: readonly number[];
  readonly holdMsMax: number;
  /** Share of holds that last over the next kill. */
  readonly keepsShare: number;
}

/** Takes and gives back contested locks, repeats requests it has had answers to, and keeps some locks over kills. */
export class Worker extends Application {
  readonly #options: WorkerOptions;
  /** Requests of grants that were given back: a repeat must never grant again. */
  readonly #settled: { readonly name: string; readonly request: string; readonly token: number }[] = [];

  constructor(caller: Caller, options: WorkerOptions) {
    super(caller);
    this.#options = options;
  }

  protected keepalive(): 'app' | 'stream' | 'both' {
    return 'app';
  }

  protected async work(): Promise<void> {
    const { caller } = this;
    const { random } = caller;
    const { names, waitsMs } = this.#options;
    while (!caller.isEnding) {
      const name = random.pick(names);
      const request = this.newRequest();
      const grant = await this.acquire(name, request, random.pick(waitsMs));
      if (grant !== null) await this.#hold(grant, request);
      else await pause(random.between(5, 40));
      if (random.chance(0.2)) await this.#repeatOldRequest();
    }
    while (this.#settled.length > 0) await this.#repeatOldRequest();
  }

  async #hold(grant: KnownGrant, request: string): Promise<void> {
    const { random, shared } = this.caller;
    if (random.chance(0.2)) await this.#repeatWhileHeld(grant, request);
    if (random.chance(this.#options.keepsShare)) {
      await Promise.race([shared.lives.nextLife(), aborted(shared.ending)]);
      await this.settled();
      await this.look(grant);
      await this.#repeatWhileHeld(grant, request);
    } else {
      await pause(random.int(this.#options.holdMsMax + 1));
      if (random.chance(0.3)) await this.look(grant);
    }
    await this.release(grant);
    if (grant.releasedAt !== null && this.#settled.length < 5) {
      this.#settled.push({ name: grant.name, request, token: grant.token });
    }
  }

  /** Rule C4: the token, while it is held. */
  async #repeatWhileHeld(grant: KnownGrant, request: string): Promise<void> {
    const { ledger } = this.caller.shared;
    const answer = await this.ask(grant.name, request, 0);
    if (answer === null || grant.state !== 'held') return;
    if (answer.status === 200 && answer.body.token === grant.token) return;
    const told = JSON.stringify(answer.body);
    ledger.violation(`request ${request}, held with token ${grant.token}, repeated: ${told}`);
  }

  /** Rule C4: after its end, what ended it; never a second grant. */
  async #repeatOldRequest(): Promise<void> {
    const { random, shared } = this.caller;
    if (this.#settled.length === 0) return;
    const at = random.int(this.#settled.length);
    const [old] = this.#settled.splice(at, 1);
    if (old === undefined) return;
    const answer = await this.ask(old.name, old.request, 0);
    if (answer === null || answer.body.code === 'NOT_HELD' || answer.body.code === 'CANCELLED') return;
    const told = JSON.stringify(answer.body);
    shared.ledger.violation(`request ${old.request}, given back with token ${old.token}, repeated: ${told}`);
    if (answer.status === 200) {
      const token = Number(answer.body.token);
      const { name: client } = this.caller;
      await this.release(shared.ledger.granted({ client, name: old.name, session: this.session, token }));
    }
  }
}

/** Like a worker, but its life shows by its open stream, which breaks with every kill and is opened again at once. */
export class StreamWorker extends Worker {
  readonly #keepalive: 'stream' | 'both';
  #streams: Promise<void> = Promise.resolve();
  #stream: EventStream | null = null;
  #opened = Promise.withResolvers<void>();
  #isDone = false;

  constructor(caller: Caller, options: WorkerOptions, keepalive: 'stream' | 'both') {
    super(caller, options);
    this.#keepalive = keepalive;
  }

  protected override keepalive(): 'app' | 'stream' | 'both' {
    return this.#keepalive;
  }

  protected override async work(): Promise<void> {
    this.#streams = this.#keepStreaming();
    await super.work();
    this.#isDone = true;
    const { api } = this.caller;
    await this.caller.insist('open', () => api.close(this.session));
    await this.#streams;
  }

  protected override async keepAlive(): Promise<void> {
    if (this.#keepalive === 'both') await super.keepAlive();
  }

  override async settled(): Promise<void> {
    await this.#opened.promise;
  }

  async #keepStreaming(): Promise<void> {
    const { caller } = this;
    while (!this.#isDone) {
      try {
        this.#stream = await EventStream.open(caller.api.client, this.session);
      } catch (error) {
        if (!isLostAnswer(error) && !this.#isDone) {
          this.over(`stream: ${String(error)}`);
          return;
        }
        await pause(RETRY_MS);
        continue;
      }
      this.#opened.resolve();
      await this.#stream.ended;
      this.#opened = Promise.withResolvers();
      for (const line of this.#stream.lines) {
        if (line.event === 'lost' || line.event === 'revoking' || (line.event === 'session_lost' && !this.#isDone)) {
          this.caller.shared.ledger.violation(`${caller.name} was told on its stream: ${JSON.stringify(line)}`);
        }
      }
    }
    this.#opened.resolve();
  }
}

/** Hangs up while its acquires are under way: nothing of them may remain, although its session goes on. */
export class Leaver extends Application {
  readonly #names: readonly string[];

  constructor(caller: Caller, names: readonly string[]) {
    super(caller);
    this.#names = names;
  }

  protected keepalive(): 'app' | 'stream' | 'both' {
    return 'app';
  }

  protected async work(): Promise<void> {
    const { caller } = this;
    const { random } = caller;
    while (!caller.isEnding) {
      const hangUp = new AbortController();
      const body = { session_id: this.session, wait_ms: random.pick([0, 60_000]), owner: caller.name };
      const asked = caller.api.acquire(random.pick(this.#names), body, hangUp.signal).catch(() => null);
      await pause(random.int(30));
      hangUp.abort();
      const answer = await asked;
      if (answer?.status === 200) {
        // It was faster than the hang-up: this is a grant like any other.
        const name = String(answer.body.session_id) === this.session ? body : null;
        if (name !== null) await this.#giveBack(Number(answer.body.token));
      }
    }
    await this.#isGone();
  }

  /** Which of its names the token belongs to is not told by the answer. */
  async #giveBack(token: number): Promise<void> {
    const { caller } = this;
    for (const name of this.#names) {
      await caller.insist('release', () => caller.api.release({ name, session: this.session, token }));
    }
  }

  async #isGone(): Promise<void> {
    const { api, name: client, shared } = this.caller;
    const start = performance.now();
    for (const name of this.#names) {
      for (;;) {
        const { holder } = (await api.get(name)) as { holder: { client?: string } | null };
        if (holder?.client !== client) break;
        if (performance.now() - start > OWN_WAY_MS_MAX) {
          shared.ledger.violation(`${client} hung up, and still holds ${name}: ${JSON.stringify(holder)}`);
          break;
        }
        await pause(RETRY_MS);
      }
    }
  }
}

/** Locks without a session of its own: each acquire opens one, which goes with the lock. */
export async function oneLockWorker(caller: Caller, names: readonly string[]): Promise<void> {
  const { random, shared, api } = caller;
  const { ledger, lives, ttlMs } = shared;
  while (!caller.isEnding) {
    const name = random.pick(names);
    const body = { client: caller.name, ttl_s: ttlMs / 1000 };
    const answer = await caller.insist('acquire', () => api.acquire(name, body));
    if (answer.status !== 200) {
      await pause(random.between(20, 100));
      continue;
    }
    const session = String(answer.body.session_id);
    const grant = ledger.granted({ client: caller.name, name, session, token: Number(answer.body.token) });
    if (random.chance(0.3)) await Promise.race([lives.nextLife(), aborted(shared.ending)]);
    else await pause(random.int(300));
    await lookAt(caller, grant);
    await releaseGrant(caller, grant);
  }
  api.end();
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
