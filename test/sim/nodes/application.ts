/**
 * An application: sessions, locks, and a resource it writes to under them. Well-meaning but careless, as applications are:
 * it hangs up, forgets, releases twice, falls silent, and writes without a look at the clock after it was frozen.
 */
import type { OpenOptions } from '../../../src/sidecar/service.ts';
import type { Random } from '../../support/random.ts';
import type { Habits } from '../plan.ts';
import type { Life, VirtualProcess } from '../world/process.ts';
import type { App, ApplicationOptions } from './app.ts';
import { type AppGrant, type AppShare, grantId } from './app-grant.ts';
import { AppSession, LOCAL_MS_MAX } from './app-session.ts';
import type { Call, CallOptions, LocalHttp } from './local-http.ts';
import { Worker } from './worker.ts';

/** A close goes on by itself when the group does not confirm it soon. */
const CLOSE_MS_MAX = 5_200;

export class Application implements App {
  readonly options: ApplicationOptions;
  readonly process: VirtualProcess;
  readonly life: Life;
  readonly random: Random;
  readonly sessions = new Set<AppSession>();
  readonly grants = new Map<string, AppGrant>();
  /** Lost before their answers arrived. */
  readonly #lostUnseen = new Set<string>();
  /** Lost, and it knows: the answer of another acquire that shared one of them may still arrive. */
  readonly #lostSeen = new Set<string>();
  /** What it has given back: a repeat of the same request may be answered with one of them, late. */
  readonly #givenBack = new Set<string>();
  #busy = 0;
  isLeaving = false;
  #lastRequest = 0;

  /** Starts its process. */
  constructor(options: ApplicationOptions) {
    this.options = options;
    this.process = options.process;
    this.random = options.random;
    this.life = options.process.start();
    for (let i = 0; i < options.plan.workersPerApplication; i++)
      this.alongside(() => new Worker(this).work());
  }

  get habits(): Habits {
    return this.options.plan.habits;
  }

  get http(): LocalHttp {
    return this.options.sidecar.http;
  }

  get part(): string {
    return this.process.name;
  }

  /** All workers have stopped, as they do when it leaves. */
  get isIdle(): boolean {
    return this.#busy === 0;
  }

  nextRequest(): string {
    return `r-${++this.#lastRequest}`;
  }

  /** Runs something that must be over before the application counts as idle. */
  alongside(work: () => Promise<void>): void {
    this.#busy++;
    void work().then(() => this.#busy--);
  }

  call<T>(options: CallOptions<T>): Call<T> {
    return this.http.call(this.life, options);
  }

  /** A session to lock in; null when none could be opened. */
  async usableSession(): Promise<AppSession | null> {
    for (const session of this.sessions) if (session.isUsable && this.random.chance(0.9)) return session;
    const wanted = this.#newSession();
    const { outcome } = this.call({
      what: 'open',
      boundMs: LOCAL_MS_MAX,
      run: (service) => service.openSession(wanted),
    });
    const answer = await outcome;
    if (answer.kind !== 'done') return null;
    const { sessionId, ttlMs } = answer.value;
    const session = new AppSession(this, { id: sessionId, keepalive: wanted.keepalive, ttlMs });
    this.sessions.add(session);
    return session;
  }

  sessionEnded(session: AppSession): void {
    this.sessions.delete(session);
  }

  grantOf(fullName: string, token: number): AppGrant | undefined {
    const id = grantId(fullName, token);
    const grant = this.grants.get(id);
    if (grant === undefined) this.#lostUnseen.add(id);
    return grant;
  }

  /** The answer to the acquire of a grant that it does not have has arrived. */
  arrived({ grant, request }: AppShare): void {
    this.grants.set(grant.id, grant);
    if (this.#givenBack.has(shareName(grant, request)) || this.#lostSeen.has(grant.id)) grant.arriveTooLate();
    if (!this.#lostUnseen.delete(grant.id)) return;
    grant.arriveTooLate();
    grant.toldLost();
  }

  givesBack({ grant, request }: AppShare): void {
    this.#givenBack.add(shareName(grant, request));
  }

  hasGivenBack(grant: AppGrant, request: string | undefined): boolean {
    return this.#givenBack.has(shareName(grant, request));
  }

  gaveBack({ grant }: AppShare): void {
    if (grant.isLost) this.#lostSeen.add(grant.id);
    if (grant.isGivenBack && this.grants.get(grant.id) === grant) this.grants.delete(grant.id);
  }

  /** Its sessions, those of single locks and those it has forgotten included. */
  sessionIds(): ReadonlySet<string> {
    const ofGrants = [...this.grants.values()].map(({ options }) => options.sessionId);
    return new Set([...[...this.sessions].map(({ id }) => id), ...ofGrants]);
  }

  /** Deletes one of its sessions, with all that is held in it. */
  async closeSession(): Promise<void> {
    const session = [...this.sessions].find(({ isUsable }) => isUsable);
    if (session === undefined) return;
    for (const grant of session.grants) grant.giveUp();
    session.end();
    const { outcome } = this.call({
      what: 'close of a session',
      session: session.id,
      boundMs: CLOSE_MS_MAX,
      run: (service) => service.closeSession(session.id),
    });
    await outcome;
  }

  /** Deletes all its sessions. */
  async leave(): Promise<void> {
    while ([...this.sessions].some(({ isUsable }) => isUsable)) await this.closeSession();
  }

  /** Kill -9: connections close, beliefs end. */
  die(): void {
    for (const grant of this.grants.values()) grant.died();
    const { life } = this;
    this.process.kill();
    this.http.applicationDied(life);
  }

  #newSession(): OpenOptions {
    const { random, habits } = this;
    return {
      client: this.process.name,
      keepalive: random.pick(habits.keepalives),
      ...(random.chance(0.3) ? { ttlMs: random.pick([5_000, 6_000, 10_000, 20_000]) } : {}),
      ...(random.chance(0.1) ? { maxHoldMs: random.pick([1_000, 8_000]) } : {}),
    };
  }
}

function shareName({ id }: AppGrant, request: string | undefined): string {
  return request === undefined ? id : `${id} ${request}`;
}
