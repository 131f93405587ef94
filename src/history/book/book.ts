/**
 * What the checker knows while it reads: who holds, who waits, which sessions live. It believes every event, also a wrong
 * one, so that reading goes on after a violation; judging is the properties' work (../properties).
 * Bounded: a name is dropped when nothing remains of it (rule C16), ended requests and sessions when enough newer ones ended.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry, SessionId, Token } from '../../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../../api/limits.ts';
import type { PlacedEvent } from '../verdict.ts';
import { Allowances } from './allowances.ts';
import { Memory, type Subject } from './memory.ts';
import {
  areCompatible,
  type GrantBook,
  type KnownConfig,
  type NameBook,
  NEVER,
  newName,
  type RequestBook,
  type SessionBook,
  usedPermits,
} from './subjects.ts';

/** Entries further apart than this were separated by a time without commits: a beat comes every 250 ms (rule S1). */
const COMMIT_GAP_MS = 500;
/** Leader changes remembered for the bound of promise 4. */
const TAKE_OVERS_MAX = 10_000;

export interface BookOptions {
  readonly configs: ReadonlyMap<number, NamespaceConfig | null> | undefined;
  readonly rememberedRequests: number;
  readonly lastLook: (subject: Subject) => void;
}

export class Book {
  lineage = '';
  /** The highest so far: an entry of an older epoch does not lower it. */
  epoch = 0;
  index = 0;
  /** Counts all events. */
  order = 0;
  at = 0;
  /** Run time of the entry being read. */
  runAt = Number.NEGATIVE_INFINITY;
  /** Latest run time seen in entries and records. */
  lastRunAt = Number.NEGATIVE_INFINITY;
  eventHash = '';
  version = 0;
  config: KnownConfig;
  /** Group time of the last `configured`. */
  configuredAt = 0;
  highestToken: Token = 0;
  highestTokenBy: PlacedEvent | null = null;
  highestSession: SessionId = 0;
  takeOver: PlacedEvent | null = null;
  totalHolds = 0;
  totalWaits = 0;
  openSessions = 0;
  sessions: Map<SessionId, SessionBook> = new Map();
  readonly names: Map<string, NameBook> = new Map();
  /** Names that this entry concerned, and those before it that may have left something to it. */
  readonly touched: Set<NameBook> = new Set();
  /** Lock-delays that ran out with this entry, or before it: timers that may have fired in it without an event. */
  delaysOver = 0;
  /** Stretches without commits, in group time; the same and declared pauses, in run time. */
  groupGaps = new Allowances();
  readonly runPauses = new Allowances();
  readonly memory: Memory;
  readonly #configs: BookOptions['configs'];
  /** Names by the end of their lock-delay; one whose delay was made longer stands at both. */
  readonly #delayEnds: Map<number, Set<NameBook>> = new Map();
  #nextDelayEnd = NEVER;
  #takeOvers: number[] = [];
  /** `order` before this entry. */
  #entryStart = 0;

  constructor(options: BookOptions) {
    this.memory = new Memory(options.rememberedRequests, options.lastLook);
    this.#configs = options.configs;
    this.config = options.configs === undefined ? undefined : null;
  }

  beginEntry(entry: HistoryEntry, runAt: number): void {
    this.#keepUnsettled();
    if (entry.lineage !== this.lineage) this.#beginLineage(entry.lineage);
    else if (entry.at - this.at > COMMIT_GAP_MS) this.groupGaps.add(this.at, entry.at, 0);
    if (Number.isFinite(this.runAt) && runAt - this.runAt > COMMIT_GAP_MS) {
      this.runPauses.add(this.runAt, runAt, 0);
    }
    this.epoch = Math.max(this.epoch, entry.epoch);
    this.index = entry.index;
    this.at = Math.max(this.at, entry.at);
    this.runAt = runAt;
    this.sawRunTime(runAt);
    this.eventHash = entry.eventHash;
    // Timers for which the entry before may have had no budget left are for this one.
    const over = this.order - this.#entryStart + this.delaysOver - TRANSITIONS_PER_ENTRY_MAX;
    this.delaysOver = Math.max(0, Math.min(this.delaysOver, over));
    this.#entryStart = this.order;
    this.#sweepDelays();
  }

  /** Of the names the last entry touched, those that it may have left something of to the next. */
  #keepUnsettled(): void {
    if (this.mayBeFull) return;
    for (const name of this.touched) if (name.timerIndex !== this.index) this.touched.delete(name);
  }

  /**
   * Whether this entry may have used up its budget of consequences (rule C1), so that something is left to the next. Each has an
   * event, but for a lock-delay that ends with nobody waiting.
   */
  get mayBeFull(): boolean {
    return this.order - this.#entryStart + this.delaysOver >= TRANSITIONS_PER_ENTRY_MAX;
  }

  sawRunTime(runAt: number): void {
    if (runAt > this.lastRunAt) this.lastRunAt = runAt;
  }

  /** All sessions and holds of the lineage before are over (rule S10); tokens go on rising. */
  #beginLineage(lineage: string): void {
    for (const session of this.sessions.values()) {
      if (session.state !== 'ended') this.memory.addEndedSession(session);
      session.state = 'ended';
      for (const grant of session.holds) this.memory.addEndedGrant(grant);
      const held = [...session.holds].flatMap(({ requests }) => [...requests]);
      for (const request of [...held, ...session.waits]) {
        request.state = 'ended';
        this.memory.addEndedRequest(request);
      }
      session.holds.clear();
      session.waits.clear();
    }
    this.names.clear();
    this.touched.clear();
    this.#delayEnds.clear();
    this.#nextDelayEnd = NEVER;
    this.sessions = this.memory.sessionsOf(lineage);
    this.lineage = lineage;
    this.epoch = 0;
    // Group time begins anew: at these times the lineage before stood still, not this one.
    this.at = 0;
    this.groupGaps = new Allowances();
    this.eventHash = '';
    this.version = 0;
    this.config = this.#configs === undefined ? undefined : null;
    this.configuredAt = 0;
    this.takeOver = null;
    this.highestSession = 0;
    this.totalHolds = 0;
    this.totalWaits = 0;
    this.openSessions = 0;
  }

  /** A delay that ran out with nobody waiting leaves no event: the name is dropped by time. */
  #sweepDelays(): void {
    if (this.at < this.#nextDelayEnd) return;
    this.#nextDelayEnd = NEVER;
    for (const [until, names] of this.#delayEnds) {
      if (until > this.at) {
        this.#nextDelayEnd = Math.min(this.#nextDelayEnd, until);
        continue;
      }
      this.#delayEnds.delete(until);
      for (const name of names)
        if (name.delayed !== null && name.delayedUntil === until) this.#delayIsOver(name);
    }
  }

  #delayIsOver(name: NameBook): void {
    this.delaysOver += 1;
    name.timerIndex = this.index;
    this.dropIfNothingRemains(name);
  }

  setDelay(name: NameBook, placed: PlacedEvent, until: number): void {
    name.delayed = placed;
    name.delayedUntil = until;
    this.#nextDelayEnd = Math.min(this.#nextDelayEnd, until);
    const names = this.#delayEnds.get(until);
    if (names === undefined) this.#delayEnds.set(until, new Set([name]));
    else names.add(name);
  }

  dropIfNothingRemains(name: NameBook): void {
    const remains =
      name.holds.length > 0 ||
      name.queue.size > 0 ||
      name.quarantined ||
      (name.delayed !== null && name.delayedUntil > this.at);
    if (!remains && this.names.get(name.name) === name) this.names.delete(name.name);
  }

  configure(version: number): void {
    this.version = version;
    this.config = this.#configs?.get(version);
    this.configuredAt = this.at;
    for (const name of this.names.values()) this.touched.add(name);
  }

  /** Permits of a semaphore name; null: it has none; undefined: not known. The first pattern that matches decides (rule C2). */
  permitsOf(name: string): number | null | undefined {
    if (this.config === undefined) return undefined;
    const first = this.config?.semaphores.find(({ pattern }) =>
      pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
    );
    return first?.permits ?? null;
  }

  /**
   * Whether the head of the queue can be granted now (rule C2). Permits that are not known, because the configuration is not,
   * count as used up.
   */
  headFits(name: NameBook): boolean {
    const [head] = name.queue;
    if (head === undefined || name.quarantined || this.isDelayed(name)) return false;
    if (name.holds.length === 0) return true;
    if (name.holds.some(({ mode }) => !areCompatible(mode, head.mode))) return false;
    if (head.mode === 'shared') return true;
    return usedPermits(name.holds) + head.permits <= (this.permitsOf(name.name) ?? 0);
  }

  /** Whether a lock-delay runs at the time of this entry. */
  isDelayed(name: NameBook): boolean {
    return name.delayed !== null && name.delayedUntil > this.at;
  }

  /** Undefined: unknown, because the configuration is. No namespace: 0. */
  get lockDelayMs(): number | undefined {
    return this.config === undefined ? undefined : (this.config?.lockDelayMs ?? 0);
  }

  /** Grants of the name whose clients believe at that run time that they hold it. */
  believersAt(name: string, runAt: number): GrantBook[] {
    const last = this.memory.lastGrant(name);
    if (last === undefined) return [];
    return [...last.believers, last].filter((grant) => grant.believedUntil > runAt);
  }

  raiseTokens(token: Token, by: PlacedEvent): void {
    if (token <= this.highestToken) return;
    this.highestToken = token;
    this.highestTokenBy = by;
  }

  addTakeOver(placed: PlacedEvent): void {
    this.takeOver = placed;
    this.#takeOvers.push(placed.runAt);
    if (this.#takeOvers.length > TAKE_OVERS_MAX) this.#takeOvers = this.#takeOvers.slice(TAKE_OVERS_MAX / 2);
  }

  /** Number of leader changes between two run times. */
  takeOversWithin(from: number, to: number): number {
    return this.#takeOvers.filter((runAt) => runAt > from && runAt <= to).length;
  }

  /** The name's page, made when there was none, and marked as touched by this entry. */
  page(name: string): NameBook {
    let page = this.names.get(name);
    if (page === undefined) {
      page = newName(name);
      this.names.set(name, page);
    }
    this.touched.add(page);
    page.touchedAt = this.at;
    return page;
  }

  request(session: SessionId, key: string): RequestBook | undefined {
    return this.sessions.get(session)?.requests.get(key);
  }

  hold(name: string, token: Token): GrantBook | undefined {
    return this.names.get(name)?.holds.find((grant) => grant.token === token);
  }

  /** Every grant that is held, or over and remembered. */
  *grants(): Iterable<GrantBook> {
    for (const { holds } of this.names.values()) yield* holds;
    yield* this.memory.endedGrants();
  }

  /** Everything that is waiting, held, or ended and remembered. */
  *requests(): Iterable<RequestBook> {
    for (const { holds, queue } of this.names.values()) {
      for (const { requests } of holds) yield* requests;
      yield* queue;
    }
    for (const request of this.memory.endedRequests()) {
      if (request.state !== 'held' && request.state !== 'waiting') yield request;
    }
  }
}
