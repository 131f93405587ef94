/**
 * What one thread of an application does, over and over: take a lock, work under it, give it back; and now and then
 * something else.
 */
import type { Granted } from '../../../src/sidecar/service.ts';
import type { Habits } from '../plan.ts';
import { type Asked, chooseLock } from '../plan-locks.ts';
import type { App } from './app.ts';
import { AppGrant, type AppShare, grantId } from './app-grant.ts';
import type { AppSession } from './app-session.ts';
import type { Group } from './group.ts';
import { Holding } from './holding.ts';
import type { Outcome } from './local-http.ts';

/** The group's answer to a new acquire is waited for so long (rule S11); a refusal after a wait also asks who holds. */
const ANSWER_MS_MIN = 2_000;
const ANSWER_MS_MAX = 5_000;
const EXPLAIN_MS_MAX = 500;
/** A repeated request first waits, after a restart of the sidecar, for what the group says of the session (rule A4). */
const CONFIRM_MS_MAX = 5_000;
const READ_MS_MAX = 5_000;
const WAIT_GRACE_MS = 1_000;
const SLACK_MS = 200;
/** Pause after an acquire that came to nothing. */
const BACK_OFF_MS_MAX = 1_000;
/** Repeats of one `request` until it is given up. */
const REPEATS_MAX = 4;
/** Locks that a worker takes beside its first, at any time. */
const MORE_MAX = 3;

/** Where an acquire is to happen; `session` null: in a session of its own. */
interface Target {
  readonly group: Group;
  readonly name: string;
  readonly fullName: string;
  readonly session: AppSession | null;
  readonly asked: Asked;
  readonly waitMs: number;
  readonly request: string | undefined;
}

/** The longest an acquire may take: its wait and the bounds above. */
function acquireBoundMs(waitMs: number, request: string | undefined): number {
  const answerMs = Math.min(Math.max(waitMs, ANSWER_MS_MIN), ANSWER_MS_MAX);
  const confirmMs = request === undefined ? 0 : CONFIRM_MS_MAX;
  return confirmMs + Math.max(waitMs + WAIT_GRACE_MS, answerMs) + EXPLAIN_MS_MAX + SLACK_MS;
}

export class Worker {
  readonly #app: App;
  #more = 0;

  constructor(app: App) {
    this.#app = app;
  }

  get #habits(): Habits {
    return this.#app.habits;
  }

  /** Until the application leaves. */
  async work(): Promise<void> {
    const { random, life } = this.#app;
    while (!this.#app.isLeaving) {
      await life.sleep(this.#habits.thinkMs * 2 * (random.int(1_000) / 1_000));
      if (this.#app.isLeaving) return;
      if (random.chance(this.#habits.reads)) await this.#read();
      else if (random.chance(this.#habits.wrongRelease)) await this.#releaseWrong();
      else await this.#lock();
      if (random.chance(this.#habits.fallsSilent)) this.#fallSilent();
      if (random.chance(this.#habits.closesStream)) this.#closeStream();
      if (random.chance(this.#habits.closesSession)) await this.#app.closeSession();
    }
  }

  async #lock(): Promise<void> {
    const { random } = this.#app;
    const isSingle = random.chance(this.#habits.oneLock);
    const session = isSingle ? null : await this.#app.usableSession();
    if (session === null && !isSingle) return;
    const target = this.#target(session);
    const granted = await this.#acquire(target);
    if (granted === null) await this.#app.life.sleep(random.between(0, BACK_OFF_MS_MAX));
    else await this.#workUnder(granted, target);
  }

  #workUnder(share: AppShare, target: Target): Promise<void> {
    const takeMore = (): Promise<void> => this.#takeMore(target);
    return new Holding(this.#app, share, { session: target.session, takeMore }).work();
  }

  /** The same lock in the same way: of a re-entrant grant one more share, of another mode than exclusive one more grant. */
  async #takeMore(target: Target): Promise<void> {
    const { asked, session } = target;
    if (session?.isUsable !== true || (asked.mode === 'exclusive' && !asked.reentrant)) return;
    // What is taken under what was taken would have no end otherwise.
    if (this.#more >= MORE_MAX) return;
    this.#more++;
    const more = { ...target, request: this.#request(session, asked) };
    const granted = await this.#acquire(more);
    if (granted !== null) await this.#workUnder(granted, more);
    this.#more--;
  }

  /** A retry key; a re-entrant lock is also given back by it (rule C6). */
  #request(session: AppSession | null, { reentrant }: Asked): string | undefined {
    const isWanted = session !== null && this.#app.random.chance(this.#habits.withRequest);
    return isWanted || reentrant ? this.#app.nextRequest() : undefined;
  }

  #target(session: AppSession | null): Target {
    const { random, options } = this.#app;
    const { plan, groups } = options;
    const alias = random.pick(plan.aliases);
    const name = `job-${random.int(plan.names)}`;
    const group = groups.get(alias) as Group;
    const asked = chooseLock(plan.locks, group.config, name, random);
    const request = this.#request(session, asked);
    return {
      group,
      asked,
      name,
      fullName: `${alias}/${name}`,
      session,
      waitMs: random.pick(this.#habits.waitMs),
      request,
    };
  }

  /** One acquire, with its repeats; null: nothing came of it. */
  async #acquire(target: Target): Promise<AppShare | null> {
    const { random, life } = this.#app;
    for (let i = 0; i < REPEATS_MAX; i++) {
      const isRepeatable = target.request !== undefined && target.session !== null;
      if (isRepeatable && random.chance(this.#habits.repeatsRequest)) this.#repeatBeside(target);
      const outcome = await this.#acquireOnce(target);
      if (outcome.kind === 'done') return outcome.value;
      const isRetryable =
        outcome.kind === 'broken' || (outcome.kind === 'refused' && outcome.error.code === 'UNAVAILABLE');
      if (outcome.kind === 'refused') this.#learn(target, outcome.error.code);
      if (!isRetryable || target.request === undefined || target.session?.isUsable !== true) return null;
      await life.sleep(random.between(50, 2_000));
    }
    return null;
  }

  /** The same request by another thread; whichever hears of the grant first works under it. */
  #repeatBeside(target: Target): void {
    this.#app.alongside(async () => {
      const outcome = await this.#acquireOnce(target);
      if (outcome.kind === 'done') await this.#workUnder(outcome.value, target);
    });
  }

  async #acquireOnce(target: Target): Promise<Outcome<AppShare>> {
    const { random, life } = this.#app;
    const { fullName, session, asked, waitMs, request } = target;
    const { owner, ...mode } = asked;
    let seen: { readonly key: string; readonly groupSession: number } | null = null;
    let kept: number | undefined;
    const call = this.#app.call({
      what: `acquire of ${fullName} with wait ${waitMs}`,
      boundMs: acquireBoundMs(waitMs, request),
      waitsFor: fullName,
      ...(session === null ? {} : { session: session.id }),
      run: (service, hangUp) => {
        kept = this.#grantKept(target);
        return service.acquire(fullName, {
          ...mode,
          ...(owner === undefined ? {} : { owner }),
          waitMs,
          purpose: 'simulated',
          hangUp,
          client: this.#app.process.name,
          ...(session === null ? {} : { sessionId: session.id }),
          ...(request === undefined ? {} : { request }),
        });
      },
      onServed: (outcome) => {
        if (outcome.kind === 'done') seen = this.#told(target, outcome.value);
        else if (outcome.kind === 'refused') this.#checkRepeat(target, outcome.error.code, kept);
      },
    });
    if (random.chance(this.#habits.hangsUp)) {
      const afterMs = random.chance(0.5) ? random.int(20) : random.int(Math.max(1, waitMs));
      void life.sleep(afterMs).then(() => call.hangUp());
    }
    const outcome = await call.outcome;
    if (outcome.kind !== 'done') return outcome;
    const deadlineMs =
      outcome.isStale === true ? Number.NEGATIVE_INFINITY : Number(outcome.value.deadlineMonotonicNs) / 1e6;
    return { kind: 'done', value: this.#granted(target, outcome.value, deadlineMs, seen) };
  }

  /** Rule A4: what the application is told is in the sidecar's state file by then. */
  #told({ group, fullName, request }: Target, granted: Granted) {
    const { sessionId, token } = granted;
    const { sidecar } = this.#app.options;
    const { store } = sidecar;
    sidecar.checkDeadline(group.alias, granted, granted);
    const record = store.grant(group.alias, sessionId, { token, request });
    const groupSession = store.groupSession(group.alias, sessionId);
    if (record !== undefined && groupSession !== undefined) return { key: record.key, groupSession };
    this.#app.options.findings.add(
      'rule A4',
      `token ${token} of ${fullName} is told before it is in the state file`,
    );
    return null;
  }

  /** The grant of this `request` that the sidecar keeps now. */
  #grantKept({ group, session, request }: Target): number | undefined {
    if (request === undefined || session === null) return undefined;
    return this.#app.options.sidecar.store.grantOfRequest(group.alias, session.id, request)?.token;
  }

  /** Rule C4: a repeat must not be refused as held, least of all by its own grant, which was there when it arrived. */
  #checkRepeat(target: Target, code: string, keptAtArrival: number | undefined): void {
    if (code !== 'HELD' && code !== 'WAIT_TIMEOUT') return;
    if (keptAtArrival === undefined || this.#grantKept(target) !== keptAtArrival) return;
    const { request, fullName } = target;
    const message = `${request} of ${fullName} is refused ${code}, though it was granted token ${keptAtArrival}`;
    this.#app.options.findings.add('rule C4', message);
  }

  #granted(
    { group, name, fullName, session, asked, request }: Target,
    { sessionId, token }: Granted,
    deadlineMs: number,
    seen: { readonly key: string; readonly groupSession: number } | null,
  ): AppShare {
    const known = this.#app.grants.get(grantId(fullName, token));
    const key = seen?.key ?? '';
    // What was given up is held again if another acquire joined it before (rule C6); what was lost is lost for all.
    if (known !== undefined && (!known.isOver || known.isLost || known.shareOf(request) !== undefined)) {
      known.told(deadlineMs);
      const isLate = known.shareOf(request) === undefined && this.#app.hasGivenBack(known, request);
      const share = known.share(request, key);
      if (isLate) share.arriveTooLate();
      return share;
    }
    const { world, machine } = this.#app.process;
    const options = {
      judge: group.judge,
      lineage: group.store.lineage,
      machine,
      fullName,
      name,
      sessionId,
      session: seen?.groupSession ?? 0,
      token,
      asked,
    };
    const grant = new AppGrant(world, options, deadlineMs);
    const share = grant.share(request, key);
    // The application has closed the session while the answer was on its way.
    if (session?.isOver === true) grant.arriveTooLate();
    this.#app.arrived(share);
    // It was frozen while the answer waited: a deadline that has passed is final, and its own clock says so (rule A1).
    if (!grant.isBelieved && session?.hasStream !== true) grant.foundLost();
    return share;
  }

  #learn({ session }: Target, code: string): void {
    if (code === 'SESSION_EXPIRED' && session !== null && !session.hasStream) session.end();
  }

  async #read(): Promise<void> {
    const { random, options } = this.#app;
    const alias = random.pick(options.plan.aliases);
    const call = random.chance(0.5)
      ? this.#app.call({
          what: 'get',
          boundMs: READ_MS_MAX + SLACK_MS,
          run: (service) => service.getLock(`${alias}/job-${random.int(options.plan.names)}`),
        })
      : this.#app.call({
          what: 'list',
          boundMs: READ_MS_MAX * options.plan.aliases.length + SLACK_MS,
          run: (service) => service.listLocks({ prefix: '', limit: random.between(1, 5) }),
        });
    await call.outcome;
  }

  /** A token that is not this session's, or not any more: nothing may come of it. */
  async #releaseWrong(): Promise<void> {
    const { random, options } = this.#app;
    const session = await this.#app.usableSession();
    if (session === null) return;
    const fullName = `${random.pick(options.plan.aliases)}/job-${random.int(options.plan.names)}`;
    // Tokens follow each other: the one below may be another grant of this very application.
    const held = new Set([...this.#app.grants.values()].map((grant) => grant.token));
    const tokens = [...held].map((one) => one - 1).filter((one) => !held.has(one));
    const token = tokens.length === 0 ? 7 : random.pick(tokens);
    const { outcome } = this.#app.call({
      what: 'release of a wrong token',
      session: session.id,
      boundMs: READ_MS_MAX + SLACK_MS,
      run: (service) => service.release(fullName, { sessionId: session.id, token }),
    });
    await outcome;
  }

  #fallSilent(): void {
    const { random } = this.#app;
    const session = [...this.#app.sessions][0];
    session?.fallSilent({ keepsStream: session.keepalive === 'both' && random.chance(0.5) });
  }

  #closeStream(): void {
    const [first] = [...this.#app.sessions].filter(({ hasStream }) => hasStream);
    first?.closeStream();
  }
}
