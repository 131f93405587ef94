/**
 * Working under a lock: writes to the resource, looks whether it is still held, renews, and gives the lock back in one of
 * the ways in which applications do.
 */

import type { Deadline } from '../../../src/sidecar/service.ts';
import type { App } from './app.ts';
import type { AppGrant, AppShare } from './app-grant.ts';
import { type AppSession, LOCAL_MS_MAX } from './app-session.ts';

const RELEASE_MS_MAX = 5_000;
const READ_MS_MAX = 5_000;
const SLACK_MS = 200;
/** The sidecar knows its own sessions, and only asks who has the lock by now. */
const REFUSED_WITHIN_MS = { SESSION_EXPIRED: 500 + SLACK_MS };
/** Longest time between two looks at the lock: a loss must be found out within TTL + 1 s. */
const LOOK_MS_MAX = 1_500;

export class Holding {
  readonly #app: App;
  readonly #share: AppShare;
  readonly #grant: AppGrant;
  /** Null: the lock has a session of its own, which only renewing keeps. */
  readonly #session: AppSession | null;
  readonly #takeMore: () => Promise<void>;
  #isRenewing = false;

  /** `takeMore`: asks for the same lock once more and works under it. */
  constructor(
    app: App,
    share: AppShare,
    { session, takeMore }: { readonly session: AppSession | null; readonly takeMore: () => Promise<void> },
  ) {
    this.#app = app;
    this.#share = share;
    this.#grant = share.grant;
    this.#session = session;
    this.#takeMore = takeMore;
    session?.grants.add(share.grant);
  }

  async work(): Promise<void> {
    if (this.#share.isWorkedOn) return;
    this.#share.isWorkedOn = true;
    const { random, life, habits, options } = this.#app;
    const { fullName, token, asked } = this.#grant.options;
    // Tokens of the other modes only order grants: who writes under them, with a fence, would be refused (promise 6).
    const writes = asked.mode === 'exclusive';
    const { takesMore } = options.plan.locks;
    const forMs =
      habits.holdMs * 2 * (random.int(1_000) / 1_000) * (random.chance(habits.neverReleases) ? 50 : 1);
    const endMs = this.#app.process.machine.monotonicMs() + forMs;
    while (!this.#grant.isOver) {
      const leftMs = endMs - this.#app.process.machine.monotonicMs();
      if (leftMs <= 0 || (this.#app.isLeaving && random.chance(0.5))) break;
      if (writes && this.#grant.isBelieved) this.#write();
      if (takesMore > 0 && !this.#app.isLeaving && random.chance(takesMore))
        this.#app.alongside(this.#takeMore);
      await life.sleep(Math.min(leftMs, LOOK_MS_MAX));
      // It was frozen just now, for all it knows, and does not look before it writes: the fence has to (case E24).
      if (random.chance(0.3) && writes) options.resource.write(fullName, token);
      await this.#look();
    }
    this.#app.givesBack(this.#share);
    await this.#giveBack();
    if (this.#grant.isGivenBack) this.#session?.grants.delete(this.#grant);
    this.#app.gaveBack(this.#share);
  }

  #write(): void {
    const { random, options } = this.#app;
    const { resource } = options;
    const { fullName, token } = this.#grant.options;
    if (resource.write(fullName, token) || random.chance(0.5)) return;
    void this.#app.call({
      what: 'stale report',
      boundMs: READ_MS_MAX + SLACK_MS,
      run: (service) => service.reportStale(fullName, { token, resource: 'simulated' }),
    });
  }

  async #look(): Promise<void> {
    const { fullName, token } = this.#grant.options;
    const renews = this.#session === null || (!this.#session.isSilent && this.#app.random.chance(0.1));
    // Not waited for: it may take as long as the group does, and a loss must be found out meanwhile.
    if (renews && !this.#isRenewing) this.#app.alongside(() => this.#renew());
    const { outcome } = this.#app.call({
      what: 'held',
      boundMs: LOCAL_MS_MAX,
      run: (service) => service.held(fullName, token),
      onServed: (served) => {
        this.#app.options.sidecar.checkKept(aliasOf(fullName), this.#share);
        if (served.kind === 'done' && served.value.held) this.#checkDeadline(served.value);
      },
    });
    const answer = await outcome;
    if (answer.kind !== 'done' || answer.isStale === true) return;
    const { held, deadlineMonotonicNs } = answer.value;
    if (held) this.#grant.told(Number(deadlineMonotonicNs) / 1e6);
    // With a stream it is told; a moment's doubt, as after a sleep of the machine, may pass (rule A2).
    else if (this.#session?.hasStream !== true) this.#grant.foundLost();
  }

  async #renew(): Promise<void> {
    const { fullName, sessionId, token } = this.#grant.options;
    this.#isRenewing = true;
    const { outcome } = this.#app.call({
      what: 'renew',
      session: sessionId,
      boundMs: READ_MS_MAX + SLACK_MS,
      refusedWithinMs: REFUSED_WITHIN_MS,
      run: (service) => service.renew(fullName, { sessionId, token }),
      onServed: (served) => served.kind === 'done' && this.#checkDeadline(served.value),
    });
    const answer = await outcome;
    this.#isRenewing = false;
    if (answer.kind === 'done' && answer.isStale !== true)
      this.#grant.told(Number(answer.value.deadlineMonotonicNs) / 1e6);
  }

  #checkDeadline({ deadlineInMs = 0, deadlineMonotonicNs = 0n }: Partial<Deadline>): void {
    const { options } = this.#grant;
    const deadline = { deadlineInMs, deadlineMonotonicNs };
    this.#app.options.sidecar.checkDeadline(aliasOf(options.fullName), options, deadline);
  }

  async #giveBack(): Promise<void> {
    const { random, habits } = this.#app;
    const isLost = this.#grant.isOver;
    if (this.#grant.options.asked.reentrant && random.chance(habits.wrongRelease))
      await this.#releaseUnnamed();
    this.#share.giveBack();
    if (isLost && random.chance(0.5)) return;
    if (this.#session?.isSilent === true) return;
    const first = await this.#release(random.chance(habits.hangsUp));
    if (!random.chance(habits.wrongRelease)) return;
    const second = await this.#release(false);
    if (first !== 'done' || second !== 'done') return;
    const { fullName, token } = this.#grant.options;
    this.#app.options.findings.add('rule C7', `token ${token} of ${fullName} was released twice`);
  }

  /** Rule C6: of a re-entrant grant a release says which acquire it gives back; one that does not changes nothing. */
  async #releaseUnnamed(): Promise<void> {
    const { fullName, sessionId, token } = this.#grant.options;
    const { outcome } = this.#app.call({
      what: `release of ${fullName} without its request`,
      session: sessionId,
      boundMs: RELEASE_MS_MAX + SLACK_MS,
      refusedWithinMs: REFUSED_WITHIN_MS,
      run: (service) => service.release(fullName, { sessionId, token }),
    });
    const answer = await outcome;
    if (answer.kind !== 'done') return;
    const message = `re-entrant token ${token} of ${fullName} was released without a request`;
    this.#app.options.findings.add('rule C6', message);
  }

  /** `done`: it was released by this very call. */
  async #release(hangsUp: boolean): Promise<'done' | 'already' | 'other'> {
    const { fullName, sessionId, token } = this.#grant.options;
    const { request } = this.#share;
    const ofRequest = request === undefined ? {} : { request };
    const call = this.#app.call({
      what: `release of ${fullName}`,
      session: sessionId,
      boundMs: RELEASE_MS_MAX + SLACK_MS,
      refusedWithinMs: REFUSED_WITHIN_MS,
      run: (service) => service.release(fullName, { sessionId, token, ...ofRequest }),
      onServed: (served) => {
        if (served.kind === 'refused' && served.error.code === 'NOT_HELD')
          this.#app.options.sidecar.checkForgotten(aliasOf(fullName), this.#share);
      },
    });
    if (hangsUp) void this.#app.life.sleep(this.#app.random.int(10)).then(() => call.hangUp());
    const answer = await call.outcome;
    if (answer.kind !== 'done') return 'other';
    return answer.value.already ? 'already' : 'done';
  }
}

function aliasOf(fullName: string): string {
  return fullName.slice(0, fullName.indexOf('/'));
}
