/**
 * What the applications have in common under which the server is killed. Each does what the API's texts ask of it: it
 * repeats a call whose answer was lost, with the same `request`, and keeps its session alive. So each may expect what is
 * promised.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type ApiAnswer, LockApi } from '../../support/dev/lock-api.ts';
import type { Random } from '../../support/random.ts';
import type { KnownGrant, Ledger } from './ledger.ts';
import type { Lives, RequestKind } from './lives.ts';

export const RETRY_MS = 25;
const KEEPALIVE_EVERY_MS = 1_000;
/** How long a repeated request may be told that an earlier attempt of its own is in the way. */
const OWN_WAY_MS_MAX = 10_000;
const MAX_HOLD_MS = 600_000;

export interface Load {
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

/** Tells of each request, so that kills can be aimed at it, and repeats it until it is answered. */
export class Caller {
  readonly name: string;
  readonly api: LockApi;
  readonly load: Load;
  readonly random: Random;

  constructor(name: string, load: Load, random: Random) {
    this.name = name;
    this.load = load;
    this.random = random;
    this.api = new LockApi(load.lives.port, load.alias);
  }

  async insist(kind: RequestKind, call: () => Promise<ApiAnswer>): Promise<Answered> {
    const { lives } = this.load;
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

  /** Token of the holder; asked again while the service says that it cannot tell. */
  async read(name: string): Promise<unknown> {
    for (;;) {
      const { status, body } = await this.insist('read', () => this.api.client.get(this.api.path(name)));
      if (status === 200) return body.token;
      if (body.code !== 'UNAVAILABLE') throw new Error(`${name} cannot be read: ${JSON.stringify(body)}`);
    }
  }

  /** Resolves at the next restart, or when the load ends. */
  async untilNextLife(): Promise<void> {
    await Promise.race([this.load.lives.nextLife(), aborted(this.load.ending)]);
  }
}

/** The connection broke, was refused, or ended inside an answer. */
export function isLostAnswer(error: unknown): boolean {
  return error instanceof Error && 'code' in error && !isAbort(error);
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ABORT_ERR';
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

/** An application with a session. */
export abstract class Application {
  readonly caller: Caller;
  session = '';
  #openedAt = 0;
  #isOver = false;
  #requests = 0;

  constructor(caller: Caller) {
    this.caller = caller;
  }

  protected abstract readonly keepalive: 'app' | 'stream' | 'both';

  /** What it does until `isEnding`; it has given everything up when this resolves. */
  protected abstract work(): Promise<void>;

  async run(): Promise<void> {
    await this.#open();
    const { caller } = this;
    const keeping = this.keepAlive();
    await this.work();
    const { status, body } = await caller.insist('open', () => caller.api.close(this.session));
    if (status !== 200 && status !== 410) {
      caller.load.ledger.violation(`${caller.name} could not close its session: ${JSON.stringify(body)}`);
    }
    await keeping;
    caller.api.end();
  }

  protected get isOver(): boolean {
    return this.#isOver;
  }

  protected get isEnding(): boolean {
    return this.#isOver || this.caller.load.ending.aborted;
  }

  async #open(): Promise<void> {
    const { caller, keepalive } = this;
    const hold = keepalive === 'app' ? {} : { max_hold_ms: MAX_HOLD_MS };
    const body = { client: caller.name, ttl_s: caller.load.ttlMs / 1000, keepalive, ...hold };
    const answer = await caller.insist('open', () => caller.api.client.post('/v1/sessions', body));
    if (answer.status !== 200) throw new Error(`no session: ${JSON.stringify(answer.body)}`);
    this.session = String(answer.body.session_id);
    this.#openedAt = Date.now();
  }

  protected async keepAlive(): Promise<void> {
    const { caller } = this;
    while (!this.isEnding) {
      await pause(KEEPALIVE_EVERY_MS, undefined, { signal: caller.load.ending }).catch(() => undefined);
      if (this.isEnding) return;
      const { status, body } = await caller.insist('keepalive', () => caller.api.keepalive(this.session));
      if (status !== 200) this.over(`keepalive: ${JSON.stringify(body)}`);
    }
  }

  protected over(why: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.caller.load.ledger.sessionLost(this.caller.name, this.#openedAt, why);
  }

  protected newRequest(): string {
    return `${this.caller.name}-${++this.#requests}`;
  }

  /** Null: refused, or the load ended while it waited. */
  protected async acquire(name: string, request: string, waitMs: number): Promise<KnownGrant | null> {
    const { caller } = this;
    const answer = await this.ask(name, request, waitMs, caller.load.ending);
    if (answer === null) return null;
    const { ledger } = caller.load;
    if (answer.status === 200) {
      const token = Number(answer.body.token);
      return ledger.granted({ client: caller.name, name, session: this.session, token });
    }
    const code = String(answer.body.code);
    if (code === 'SESSION_EXPIRED') this.over(`acquire: ${JSON.stringify(answer.body)}`);
    else if (!['HELD', 'WAIT_TIMEOUT', 'CANCELLED', 'UNAVAILABLE'].includes(code)) {
      ledger.violation(`${caller.name}: acquire of ${name}: ${JSON.stringify(answer.body)}`);
    }
    return null;
  }

  /**
   * Asks until the answer is about the lock and not about an earlier attempt of this very request, which a kill may have left
   * behind and which must be out of the way soon. Null: the signal came.
   */
  protected async ask(
    name: string,
    request: string,
    waitMs: number,
    signal?: AbortSignal,
  ): Promise<Answered | null> {
    const { caller } = this;
    const body = { session_id: this.session, request, owner: caller.name, purpose: request, wait_ms: waitMs };
    const endMs = performance.now() + waitMs + OWN_WAY_MS_MAX;
    for (;;) {
      let answer: Answered;
      try {
        answer = await caller.insist('acquire', () => caller.api.acquire(name, body, signal));
      } catch (error) {
        if (isAbort(error)) return null;
        throw error;
      }
      const holder = answer.body.holder as { purpose?: string } | null | undefined;
      const isInItsOwnWay = answer.status !== 200 && holder?.purpose === request;
      if (!isInItsOwnWay && answer.body.code !== 'UNAVAILABLE') return answer;
      if (performance.now() > endMs) {
        const told = JSON.stringify(answer.body);
        caller.load.ledger.violation(`${caller.name}: request ${request} stands in its own way: ${told}`);
        return answer;
      }
      await pause(RETRY_MS);
    }
  }
}

/** A renew while it holds must say so. */
export async function lookAt(caller: Caller, grant: KnownGrant): Promise<void> {
  if (grant.state !== 'held') return;
  const sentAt = Date.now();
  const { status, body } = await caller.insist('renew', () => caller.api.renew(grant));
  if (grant.state !== 'held') return;
  if (status === 200 && body.token === grant.token) grant.seenHeldAt = sentAt;
  else caller.load.ledger.lost(grant, `renew: ${JSON.stringify(body)}`);
}

/** Gives it back, however often the answer is lost. */
export async function release(caller: Caller, grant: KnownGrant): Promise<void> {
  const { ledger } = caller.load;
  ledger.givesUp(grant);
  for (;;) {
    const { status, body, tries } = await caller.insist('release', () => caller.api.release(grant));
    if (status === 200) {
      ledger.released(grant);
      const token = await caller.read(grant.name);
      if (token === grant.token) ledger.violation(`${grant.name} is held by ${token}, which was given back`);
      return;
    }
    // Not confirmed within five seconds: it goes on by itself, and may be asked for again.
    if (body.code === 'UNAVAILABLE') continue;
    const isOver = ['NOT_HELD', 'STALE_TOKEN', 'SESSION_EXPIRED'].includes(String(body.code));
    if (grant.state === 'givenUp' && !(tries > 1 && isOver)) {
      ledger.violation(`${caller.name}: release of ${grant.name} (${grant.token}): ${JSON.stringify(body)}`);
    }
    return;
  }
}
