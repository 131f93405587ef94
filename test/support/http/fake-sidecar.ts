/**
 * A `SidecarService` in memory, for tests of the HTTP layer alone: exclusive locks with FIFO queues in a few lines, no
 * log, no TTL, no limits. What the layer does with refusals is tested by telling it what to refuse next.
 */

import { LeaseholdError } from '../../../src/api/errors.ts';
import type { LockView, WaiterView } from '../../../src/api/wire.ts';
import type { Runtime } from '../../../src/platform/runtime.ts';
import type {
  AcquireOptions,
  Deadline,
  EventSubscription,
  Granted,
  ListOptions,
  OpenedSession,
  OpenOptions,
  Released,
  SidecarService,
  StreamLine,
} from '../../../src/sidecar/service.ts';

const TTL_MS = 15_000;
const ALIASES = ['payouts', 'exports'];

interface Session {
  readonly id: string;
  readonly number: number;
  readonly client: string;
  readonly ttlMs: number;
  readonly listeners: Set<(line: StreamLine) => void>;
  readonly endedTokens: Set<number>;
  readonly requests: Map<string, Granted>;
}

interface Claim {
  readonly session: Session;
  readonly options: AcquireOptions;
  readonly sinceMs: number;
}

interface Grant extends Claim {
  readonly token: number;
}

interface Waiter extends Claim {
  grant(granted: Granted): void;
  refuse(error: LeaseholdError): void;
}

interface Lock {
  grant: Grant | null;
  queue: Waiter[];
}

export class FakeSidecar implements SidecarService {
  readonly #runtime: Runtime;
  readonly #sessions = new Map<string, Session>();
  readonly #locks = new Map<string, Lock>();
  #token = 1_000_000;
  #failure: unknown;
  /** Names of the methods called, in order. */
  readonly calls: string[] = [];
  /** Event subscriptions that the HTTP layer closed. */
  closedSubscriptions = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** The next call throws this. */
  failNext(thrown: unknown): void {
    this.#failure = thrown;
  }

  /** Sends a line to all streams of a session. */
  emit(sessionId: string, line: StreamLine): void {
    for (const listener of this.#session(sessionId).listeners) listener(line);
  }

  aliases(): readonly string[] {
    return ALIASES;
  }

  async openSession(options: OpenOptions): Promise<OpenedSession> {
    this.#enter('openSession');
    const session = this.#open(options.client, options.ttlMs);
    return { sessionId: session.id, ttlMs: session.ttlMs, keepaliveEveryMs: session.ttlMs / 5 };
  }

  async keepaliveSession(sessionId: string): Promise<Deadline> {
    this.#enter('keepaliveSession');
    this.#session(sessionId);
    return this.#deadline();
  }

  openEvents(sessionId: string, onLine: (line: StreamLine) => void): EventSubscription {
    this.#enter('openEvents');
    const { listeners } = this.#session(sessionId);
    listeners.add(onLine);
    return {
      close: () => {
        if (listeners.delete(onLine)) this.closedSubscriptions++;
      },
    };
  }

  async closeSession(sessionId: string): Promise<void> {
    this.#enter('closeSession');
    const session = this.#session(sessionId);
    this.#sessions.delete(sessionId);
    for (const [name, lock] of this.#locks) {
      const gone = lock.queue.filter((waiter) => waiter.session === session);
      lock.queue = lock.queue.filter((waiter) => waiter.session !== session);
      for (const waiter of gone) waiter.refuse(expired(sessionId));
      if (lock.grant?.session === session) this.#free(name, lock);
    }
    for (const listener of session.listeners) listener({ event: 'sessionLost', reason: 'closed' });
  }

  async acquire(fullName: string, options: AcquireOptions): Promise<Granted> {
    this.#enter('acquire');
    this.#checkAlias(fullName);
    const session =
      options.sessionId === undefined
        ? this.#open(options.client ?? 'one-lock', options.ttlMs)
        : this.#session(options.sessionId);
    const repeated = options.request === undefined ? undefined : session.requests.get(options.request);
    if (repeated !== undefined) return repeated;
    const lock = this.#lock(fullName);
    const claim = { session, options, sinceMs: this.#runtime.clock.monotonicMs() };
    if (lock.grant === null) return this.#grant(fullName, lock, claim);
    if (options.waitMs === 0) throw this.#heldError('HELD', lock, session);
    return await this.#wait(fullName, lock, claim);
  }

  async release(
    fullName: string,
    options: { readonly sessionId: string; readonly token: number },
  ): Promise<Released> {
    this.#enter('release');
    this.#checkAlias(fullName);
    const session = this.#session(options.sessionId);
    const lock = this.#lock(fullName);
    if (lock.grant?.session === session && lock.grant.token === options.token) {
      this.#free(fullName, lock);
      return { already: false };
    }
    if (session.endedTokens.has(options.token)) return { already: true };
    throw notHeld(lock, options.token);
  }

  async renew(
    fullName: string,
    options: { readonly sessionId: string; readonly token: number },
  ): Promise<Granted> {
    this.#enter('renew');
    this.#checkAlias(fullName);
    const session = this.#session(options.sessionId);
    const lock = this.#lock(fullName);
    if (lock.grant?.session !== session || lock.grant.token !== options.token)
      throw notHeld(lock, options.token);
    return this.#granted(lock.grant);
  }

  async reportStale(fullName: string): Promise<void> {
    this.#enter('reportStale');
    this.#checkAlias(fullName);
  }

  async getLock(fullName: string): Promise<LockView> {
    this.#enter('getLock');
    this.#checkAlias(fullName);
    return this.#view(fullName, this.#locks.get(fullName));
  }

  async listLocks({
    prefix,
    limit,
    after = '',
  }: ListOptions): Promise<{ readonly locks: readonly LockView[]; readonly next?: string }> {
    this.#enter('listLocks');
    if (prefix !== '') this.#checkAlias(prefix);
    const names = [...this.#locks.keys()].filter((name) => name.startsWith(prefix) && name > after).sort();
    const held = names.filter((name) => this.#locks.get(name)?.grant !== null);
    const shown = held.slice(0, limit);
    const locks = shown.map((name) => this.#view(name, this.#locks.get(name)));
    const last = shown.at(-1);
    return held.length > shown.length && last !== undefined ? { locks, next: last } : { locks };
  }

  held(fullName: string, token: number): { readonly held: boolean } & Partial<Deadline> {
    this.#enter('held');
    this.#checkAlias(fullName);
    const grant = this.#locks.get(fullName)?.grant;
    return grant?.token === token ? { held: true, ...this.#deadline() } : { held: false };
  }

  #enter(method: string): void {
    this.calls.push(method);
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
  }

  #open(client: string, ttlMs: number = TTL_MS): Session {
    const number = this.#sessions.size + 1;
    const id = this.#runtime.random.hex(8);
    const session: Session = {
      id,
      number,
      client,
      ttlMs,
      listeners: new Set(),
      endedTokens: new Set(),
      requests: new Map(),
    };
    this.#sessions.set(id, session);
    return session;
  }

  #session(id: string): Session {
    const session = this.#sessions.get(id);
    if (session === undefined) throw expired(id);
    return session;
  }

  #checkAlias(fullName: string): void {
    const alias = fullName.slice(0, fullName.indexOf('/'));
    if (ALIASES.includes(alias)) return;
    throw new LeaseholdError('NAMESPACE_NOT_FOUND', `No namespace is served under ${alias}.`, {
      field: 'name',
    });
  }

  #lock(name: string): Lock {
    const lock = this.#locks.get(name) ?? { grant: null, queue: [] };
    this.#locks.set(name, lock);
    return lock;
  }

  #deadline(): Deadline {
    const inMs = 12_000;
    const atMs = this.#runtime.clock.monotonicMs() + inMs;
    return { deadlineInMs: inMs - 0.5, deadlineMonotonicNs: BigInt(Math.round(atMs * 1e6)) };
  }

  #grant(name: string, lock: Lock, claim: Claim): Granted {
    const grant = { ...claim, token: ++this.#token };
    lock.grant = grant;
    const granted = this.#granted(grant);
    if (claim.options.request !== undefined) claim.session.requests.set(claim.options.request, granted);
    // Rule A5: a caller that leaves before it has its answer holds nothing.
    const undo = () => {
      if (lock.grant === grant) this.#free(name, lock);
    };
    if (claim.options.hangUp.aborted) undo();
    else claim.options.hangUp.addEventListener('abort', undo, { once: true });
    return granted;
  }

  #granted(grant: Grant): Granted {
    const { session, token } = grant;
    return { sessionId: session.id, token, leaseTtlMs: session.ttlMs, ...this.#deadline() };
  }

  #wait(name: string, lock: Lock, claim: Claim): Promise<Granted> {
    return new Promise((resolve, reject) => {
      const leave = (error: LeaseholdError) => {
        if (!lock.queue.includes(waiter)) return;
        lock.queue = lock.queue.filter((other) => other !== waiter);
        timer.cancel();
        reject(error);
      };
      const timer = this.#runtime.timers.after(claim.options.waitMs, () =>
        leave(this.#heldError('WAIT_TIMEOUT', lock, claim.session)),
      );
      const waiter: Waiter = {
        ...claim,
        grant: (granted) => {
          timer.cancel();
          resolve(granted);
        },
        refuse: (error) => {
          timer.cancel();
          reject(error);
        },
      };
      lock.queue.push(waiter);
      const cancel = () => leave(new LeaseholdError('CANCELLED', `The acquire of ${name} was cancelled.`));
      if (claim.options.hangUp.aborted) cancel();
      else claim.options.hangUp.addEventListener('abort', cancel, { once: true });
    });
  }

  #free(name: string, lock: Lock): void {
    if (lock.grant !== null) lock.grant.session.endedTokens.add(lock.grant.token);
    lock.grant = null;
    const next = lock.queue.shift();
    if (next === undefined) this.#locks.delete(name);
    else next.grant(this.#grant(name, lock, next));
  }

  #view(name: string, lock: Lock | undefined): LockView {
    const grant = lock?.grant ?? null;
    const queue = lock?.queue ?? [];
    const nowMs = this.#runtime.clock.monotonicMs();
    const holders = grant === null ? [] : [{ ...person(grant), ...grantView(grant, nowMs) }];
    const waiters: WaiterView[] = queue.map((waiter) => ({
      ...person(waiter),
      mode: waiter.options.mode,
      permits: waiter.options.permits,
      waitedMs: nowMs - waiter.sinceMs,
    }));
    const counts = { holderCount: holders.length, waiterCount: queue.length };
    return { name, holders, waiters, ...counts, lockDelayMs: 0, quarantined: false };
  }

  #heldError(code: 'HELD' | 'WAIT_TIMEOUT', lock: Lock, session: Session): LeaseholdError {
    const [holder] = this.#view('', lock).holders;
    return new LeaseholdError(code, 'Somebody else holds the lock.', {
      holder: holder ?? null,
      session_id: session.id,
    });
  }
}

function person({ session, options }: Claim) {
  return { session: session.number, client: session.client, owner: options.owner ?? session.client };
}

function grantView({ token, options, sinceMs }: Grant, nowMs: number) {
  const { mode, permits, purpose } = options;
  return { token, mode, permits, purpose, heldForMs: nowMs - sinceMs, revoking: null };
}

function expired(sessionId: string): LeaseholdError {
  return new LeaseholdError('SESSION_EXPIRED', 'The session is unknown or has ended.', {
    session_id: sessionId,
  });
}

function notHeld(lock: Lock, token: number): LeaseholdError {
  const stale = lock.grant !== null && lock.grant.token > token;
  return new LeaseholdError(
    stale ? 'STALE_TOKEN' : 'NOT_HELD',
    `The token ${token} does not hold the lock.`,
    {
      token,
    },
  );
}
