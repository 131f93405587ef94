/**
 * Judges one lock group: reads each entry at the moment it becomes durable, applies it to a replica of its own and to the
 * naive model, and gives it to the checker together with what clients put on record.
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { HistoryEntry, LockEvent, SessionId, Token } from '../../../src/api/entry.ts';
import { createState, hasBacklog, type State } from '../../../src/core/index.ts';
import { HistoryChecker } from '../../../src/history/checker.ts';
import { NaiveModel } from '../../../src/history/naive-model.ts';
import type { ClientRecord } from '../../../src/history/records.ts';
import { compareWithModel } from '../../../src/history/replay.ts';
import type { PropertyName, Verdict } from '../../../src/history/verdict.ts';
import type { StoredEntry } from '../../../src/log/port.ts';
import { replay } from '../../../src/server/snapshots/recovery.ts';
import type { Poison } from '../faults/poison.ts';
import type { Life } from '../world/process.ts';
import type { World } from '../world/world.ts';
import { AttachWatch } from './attach-watch.ts';
import { AuditJudge } from './audit-judge.ts';
import { Beliefs } from './beliefs.ts';
import { ChangeWatch } from './change-watch.ts';
import type { Findings } from './findings.ts';
import { LineageWatch } from './lineage-watch.ts';

/** Grants of one name that are remembered: more than there are threads that could hold one. */
const GRANTS_REMEMBERED = 64;
/** The checker's verdict is asked for after so many entries. */
const ENTRIES_BETWEEN_VERDICTS = 32;

/** Of two sidecars with one secret each uses its own keys, and cancels those of the other: then they are sent again. */
const OF_KEYS: ReadonlySet<PropertyName> = new Set(['exactly-once-per-key', 'no-ghost-grants']);

type Ending = Extract<LockEvent, { type: 'sessionEnding' }>;

/** Steps tell apart what happens in one microsecond. */
interface Moment {
  readonly atMs: number;
  readonly step: number;
  /** Who did it, where that is known. */
  readonly by?: Life;
}

export interface GrantKnown {
  readonly lineage: string;
  readonly name: string;
  readonly session: SessionId;
  readonly token: Token;
}

/** Grants in other modes than exclusive, acquires that joined a grant, releases that left others in it, grants cut. */
export interface LockTally {
  shared: number;
  semaphore: number;
  joined: number;
  partlyReleased: number;
  permitsCut: number;
}

export interface GroupJudgeOptions {
  readonly alias: string;
  readonly lineage: string;
  readonly findings: Findings;
  readonly poison: Poison;
  /** Fastest of the group's clocks: a TTL may be over that much earlier in real time. */
  readonly fastestRate: number;
  /** Whether the group was last hindered after at least one longest TTL without any hindrance. */
  readonly isFirstStall: () => boolean;
  /**
   * Another grant of the name has just become durable, and this one is over. True: nobody holds it any more, for all that can
   * be known; else it is asked for again at the next grant.
   */
  readonly isGivenUp: (over: GrantKnown) => boolean;
  /** A session has just been ended for its silence. */
  readonly onExpired: (session: SessionId) => void;
}

export class GroupJudge {
  /** The group's state by the judge's own reading of the log. */
  state: State;
  readonly #world: World;
  readonly #options: GroupJudgeOptions;
  readonly #configs = new Map<number, NamespaceConfig | null>();
  #checker: HistoryChecker;
  #model: NaiveModel;
  #lineage: string;
  readonly #builtAt = new Map<string, Moment>();
  readonly #builtBy = new WeakMap<Life, number>();
  /** The latest grants of each name that somebody may hold, or believe that he does. */
  readonly #latest = new Map<string, GrantKnown[]>();
  /** When the revoke of a token became durable, µs. */
  readonly #revokedAtUs = new Map<Token, number>();
  readonly #beliefs = new Beliefs((belief) => this.#checker.client(belief));
  readonly #ttls = new Map<SessionId, number>();
  /** By index, from 1. */
  readonly #eventHashes: string[] = [''];
  /** When each living session was last heard of at the leader, µs: for the bound of its end. */
  readonly heardAtUs = new Map<SessionId, number>();
  /** When a sign of life of each session last reached a leader's socket, read or not. */
  readonly #knocked = new Map<SessionId, Moment>();
  readonly #heardAtStep = new Map<SessionId, number>();
  events = 0;
  /** Entries that left consequences to the next (rule C1). */
  carriedOver = 0;
  /** Told of each entry in the moment in which it becomes durable, and who has built it. */
  onDurable: (by: Life | undefined) => void = () => undefined;
  /** Told of each new behaviour level, and when its entry was built. */
  onRaised: (level: number, builtMs: number) => void = () => undefined;
  /** When the leader in office took over, µs. */
  tookOverAtUs = 0;
  readonly changes: ChangeWatch;
  /** Whether a front end had come to the leader before this step and is not ready yet (rule S4). */
  isReattaching: (leader: Life, beforeStep: number) => boolean = () => false;
  readonly lineages: LineageWatch;
  readonly attaches: AttachWatch;
  readonly audit: AuditJudge;
  readonly tally: LockTally = { shared: 0, semaphore: 0, joined: 0, partlyReleased: 0, permitsCut: 0 };

  constructor(world: World, options: GroupJudgeOptions) {
    this.#world = world;
    this.#options = options;
    this.#lineage = options.lineage;
    this.state = createState(options.lineage);
    this.#model = new NaiveModel(options.lineage);
    this.#checker = new HistoryChecker({ configs: this.#configs });
    this.lineages = new LineageWatch(world, options.findings, options.alias);
    this.attaches = new AttachWatch(world, options.findings, options.alias);
    const eventHashAt = (index: number): string | undefined => this.#eventHashes[index];
    this.audit = new AuditJudge(options.lineage, { ...options, eventHashAt });
    this.changes = new ChangeWatch(world, options.findings, options.alias);
  }

  /** Rule S10: an empty log has taken the place of the one there was. */
  beginLineage(lineage: string): void {
    const longestMs = Math.max(0, ...this.#ttls.values()) + (this.state.config?.lockDelayMs ?? 0);
    const leaseMs = longestMs / this.#options.fastestRate;
    this.#beliefs.settle();
    this.lineages.begins({ highest: this.state.lastToken, leaseMs });
    this.attaches.beginLineage();
    this.audit.beginLineage(lineage);
    this.#lineage = lineage;
    this.state = createState(lineage);
    this.#model = new NaiveModel(lineage);
    this.#configs.clear();
    this.#checker = new HistoryChecker({ configs: this.#configs });
    this.#eventHashes.length = 1;
    for (const known of [this.#builtAt, this.#ttls, this.heardAtUs, this.#knocked, this.#heardAtStep])
      known.clear();
  }

  get alias(): string {
    return this.#options.alias;
  }

  get entries(): number {
    return this.#eventHashes.length - 1;
  }

  get counts() {
    return this.#checker.verdict().counts;
  }

  eventHashAt(index: number): string | undefined {
    return this.#eventHashes[index];
  }

  /** A leader sends this entry to the log, perhaps again. */
  built(by: Life, stored: StoredEntry): void {
    this.#builtBy.set(by, stored.index);
    if (!this.#builtAt.has(stored.hash)) this.#builtAt.set(stored.hash, { ...this.#now(), by });
  }

  /** The last entry that this leader has built; it may not be durable yet. */
  builtBy(leader: Life): number {
    return this.#builtBy.get(leader) ?? 0;
  }

  /** The entry has just become part of the log. */
  durable(stored: StoredEntry): void {
    const { findings } = this.#options;
    const replayed = this.#replayed(stored);
    if (replayed === null) return;
    const { entry, applied } = replayed;
    const { lineage, epoch, index, at, wallMs, eventHash } = entry;
    this.#world.mix(Number.parseInt(stored.hash.slice(0, 7), 16));
    for (const [place, command] of entry.commands.entries()) {
      if (this.#options.poison.isPoisonous(command))
        findings.add(
          'rule C13',
          `${this.alias}: a ${command.type} that stops every replica stands in entry ${index}`,
        );
      // Of two with the same version the second is refused (rule C11).
      if (command.type === 'configure' && applied.results[place]?.type === 'done')
        this.#configs.set(command.version, command.config);
    }
    const difference = compareWithModel(this.#model, entry, applied.events, applied.results);
    if (difference !== null) findings.add('naive-model', difference.message);
    this.#eventHashes[index] = eventHash;
    this.events += applied.events.length;
    if (hasBacklog(this.state)) this.carriedOver++;
    for (const [place, command] of entry.commands.entries()) {
      if (command.type !== 'attach' || applied.results[place]?.type !== 'attached') continue;
      this.#heard(command.session);
      this.attaches.attached(command.session, command.attach, index);
    }
    const built = this.#builtAt.get(stored.hash) ?? this.#now();
    for (const [place, command] of entry.commands.entries()) {
      if (command.type === 'raiseBehaviour' && applied.results[place]?.type === 'done')
        this.onRaised(command.level, built.atMs);
    }
    for (const event of applied.events) {
      if (event.type === 'sessionEnding' && event.cause === 'expired') this.#expired(event, built);
      if (event.type === 'broken' && event.now) this.#beliefs.freedByAnother(event.token, built.atMs);
      if ((event.type === 'released' || event.type === 'cancelled') && this.attaches.isCopied(event.session))
        this.#beliefs.freedByAnother(event.token, built.atMs);
      this.#take(event);
    }
    this.#builtAt.delete(stored.hash);
    this.#checker.entry({ lineage, epoch, index, at, wallMs, eventHash, events: applied.events }, built.atMs);
    this.#beliefs.settle(built.atMs);
    if (index % ENTRIES_BETWEEN_VERDICTS === 0) this.look();
    this.onDurable(built.by);
  }

  /** Null: this program, which reads the log from its start, cannot tell how the leader came to write it (rule C14). */
  #replayed(stored: StoredEntry): ReturnType<typeof replay> | null {
    try {
      return replay(this.state, stored);
    } catch (error) {
      this.#options.findings.add('rule C14', `${this.alias}: ${String(error)}`);
      return null;
    }
  }

  /** What a replica says that it committed is what the log has. */
  reported({ index, eventHash }: HistoryEntry): void {
    if (this.#eventHashes[index] === eventHash) return;
    this.#options.findings.add(
      'durability',
      `entry ${index} was reported committed, the log has another one or none`,
    );
  }

  /** A write of a leadership that was over. */
  unfenced(what: string, epoch: number, leader: number | null): void {
    const message = `${this.alias}: the ${what} of epoch ${epoch} got through while ${leader ?? 'nobody'} led`;
    this.#options.findings.add('rule L1', message);
  }

  client(record: ClientRecord): void {
    // Of a lineage that is over, and whose end this judge has not read: what was granted there it cannot know.
    if (record.lineage !== this.#lineage) return;
    if (record.type !== 'heldInterval') {
      this.#checker.client(record);
      return;
    }
    this.#beliefs.add(record);
    if (this.#builtAt.size === 0) this.#beliefs.settle();
  }

  acknowledged(session: SessionId, sentAtUs: number): void {
    const ttlMs = this.#ttls.get(session);
    if (ttlMs === undefined) return;
    this.client({
      type: 'keepaliveAcknowledged',
      lineage: this.#lineage,
      session,
      sentAt: sentAtUs / 1_000,
      // The TTL is counted on a clock that may run faster than the run's own.
      ttlMs: ttlMs / this.#options.fastestRate - 1,
    });
  }

  paused(fromMs: number, toMs: number, extraMs: number, reason: string): void {
    this.#checker.run({ type: 'pause', from: fromMs, to: toMs, extraMs, reason });
  }

  epochLed(epoch: number, server: string): void {
    this.#checker.run({ type: 'epochLed', lineage: this.#options.lineage, epoch, server });
  }

  /** A sign of life of a session has reached a leader. */
  heard(session: SessionId, attach: number): void {
    const known = this.state.sessions.get(session);
    if (known?.attach === attach && known.ending === null) this.#heard(session);
  }

  /** A sign of life has reached the leader's socket. */
  knocked(session: SessionId, attach: number): void {
    if (this.state.sessions.get(session)?.attach === attach) {
      this.#knocked.set(session, this.#now());
    }
  }

  /** When it became certain that this grant is taken away, µs; undefined: it is not. */
  revokedAtUs(token: Token): number | undefined {
    return this.#revokedAtUs.get(token);
  }

  ttlOf(session: SessionId): number | undefined {
    return this.#ttls.get(session);
  }

  /** Takes over what the checker has found by now. */
  look(): void {
    this.#pass(this.#checker.verdict().violations);
  }

  finish(isQuiet: boolean): void {
    this.#beliefs.settle();
    this.#pass(this.#checker.finish({ quiet: isQuiet, clientsGone: isQuiet }).violations);
  }

  #pass(violations: Verdict['violations']): void {
    for (const { property, message, name, excerpt } of violations) {
      if (OF_KEYS.has(property) && excerpt.some(({ event }) => this.#isOfCopied(event))) continue;
      this.#options.findings.add(
        property,
        `${this.alias}${name === undefined ? '' : `/${name}`}: ${message}`,
      );
    }
  }

  #isOfCopied(event: LockEvent): boolean {
    return 'session' in event && this.attaches.isCopied(event.session);
  }

  #heard(session: SessionId): void {
    this.heardAtUs.set(session, this.#world.nowUs);
    this.#heardAtStep.set(session, this.#world.steps);
  }

  #expired({ session }: Ending, built: Moment): void {
    this.#options.onExpired(session);
    this.#checkDrained(session, built);
    this.#checkReattached(session, built);
  }

  /** Rule S6: nobody is expired while its keepalive lies unread in a socket, once in a while at least. */
  #checkDrained(session: SessionId, built: Moment): void {
    if (!this.#options.isFirstStall()) return;
    const knocked = this.#knocked.get(session);
    const readAtStep = this.#heardAtStep.get(session) ?? 0;
    if (knocked === undefined || knocked.step > built.step || readAtStep < built.step) return;
    const message = `${this.alias}: session ${session} was expired at ${built.atMs}, though its keepalive had lain unread since ${knocked.atMs}`;
    this.#options.findings.add('rule S6', message);
  }

  /** Rule S4: nobody is expired while a front end that came to the new leader has not said that its sessions are attached. */
  #checkReattached(session: SessionId, built: Moment): void {
    const ttlMs = this.#ttls.get(session) ?? 0;
    const owedUntilMs = this.tookOverAtUs / 1_000 + (2 * ttlMs) / this.#options.fastestRate;
    if (built.atMs >= owedUntilMs || built.by === undefined || !this.isReattaching(built.by, built.step))
      return;
    const message = `${this.alias}: session ${session} was expired at ${built.atMs}, though a front end was still attaching its sessions`;
    this.#options.findings.add('rule S4', message);
  }

  #now(): Moment {
    return { atMs: this.#world.nowMs, step: this.#world.steps };
  }

  #granted({ name, session, token, mode }: Extract<LockEvent, { type: 'granted' }>): void {
    if (mode !== 'exclusive') this.tally[mode]++;
    this.lineages.granted(name, token);
    const known = this.#latest.get(name) ?? [];
    const latest = known.filter((one) => this.#isHeld(one) || !this.#options.isGivenUp(one));
    latest.push({ lineage: this.#lineage, name, session, token });
    this.#latest.set(name, latest.slice(-GRANTS_REMEMBERED));
  }

  #forget({ name, token }: Pick<GrantKnown, 'name' | 'token'>): void {
    const known = this.#latest.get(name) ?? [];
    this.#latest.set(
      name,
      known.filter((one) => one.token !== token),
    );
  }

  #isHeld({ session, token }: GrantKnown): boolean {
    return this.state.sessions.get(session)?.holds.has(token) === true;
  }

  #take(event: LockEvent): void {
    this.#world.trace?.(`${this.alias} event ${JSON.stringify(event)}`);
    switch (event.type) {
      case 'granted':
        if (event.joined) this.tally.joined++;
        else this.#granted(event);
        return;
      case 'released':
        if (event.remaining > 0) this.tally.partlyReleased++;
        return;
      case 'broken':
        // Who breaks it at once answers for what its holder still believes (rule C9).
        if (event.now) this.#forget(event);
        return;
      case 'revoking':
        this.#revokedAtUs.set(event.token, this.#world.nowUs);
        if (event.cause === 'permitsCut') this.tally.permitsCut++;
        return;
      case 'sessionOpened':
        this.#ttls.set(event.session, event.ttlMs);
        this.#heard(event.session);
        return;
      case 'sessionEnding':
        this.heardAtUs.delete(event.session);
        this.#knocked.delete(event.session);
        this.#heardAtStep.delete(event.session);
        return;
      case 'tookOver':
        // A new leader counts a full TTL for everybody (rule S5).
        for (const session of this.heardAtUs.keys()) this.#heard(session);
        this.tookOverAtUs = this.#world.nowUs;
        if (this.state.index === 1) this.lineages.tookOver(event.token);
        this.changes.tookOver(event.reason);
        return;
      default:
        return;
    }
  }
}
