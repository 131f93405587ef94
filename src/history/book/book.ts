/**
 * What the checker knows while it reads: who holds, who waits, which sessions live. It believes every event, also a wrong
 * one, so that reading goes on after a violation; judging is the properties' work (../properties).
 * Bounded: a name is dropped when nothing remains of it (rule C16), ended requests and sessions when enough newer ones ended.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import type { HistoryEntry, SessionId, Token } from '../../api/entry.ts';
import type { PlacedEvent } from '../verdict.ts';
import { Allowances } from './allowances.ts';
import { Memory } from './memory.ts';
import { type KnownConfig, type NameBook, newName, type RequestBook, type SessionBook } from './subjects.ts';

/** Entries further apart than this were separated by a time without commits: a beat comes every 250 ms (rule S1). */
const COMMIT_GAP_MS = 500;
/** Leader changes remembered for the bound of promise 4. */
const TAKE_OVERS_MAX = 10_000;

export interface BookOptions {
  readonly configs: ReadonlyMap<number, NamespaceConfig | null> | undefined;
  readonly rememberedRequests: number;
  readonly lastLook: (subject: RequestBook | SessionBook) => void;
}

export class Book {
  lineage = '';
  /** The highest so far: an entry of an older epoch does not lower it. */
  epoch = 0;
  index = 0;
  at = 0;
  /** Run time of the entry being read. */
  runAt = Number.NEGATIVE_INFINITY;
  /** Latest run time seen in entries and records. */
  lastRunAt = Number.NEGATIVE_INFINITY;
  eventHash = '';
  version = 0;
  config: KnownConfig;
  highestToken: Token = 0;
  highestTokenBy: PlacedEvent | null = null;
  highestSession: SessionId = 0;
  takeOver: PlacedEvent | null = null;
  totalHolds = 0;
  totalWaits = 0;
  openSessions = 0;
  sessions: Map<SessionId, SessionBook> = new Map();
  readonly names: Map<string, NameBook> = new Map();
  /** Names that events of this entry concerned. */
  readonly touched: Set<NameBook> = new Set();
  /** Stretches without commits, in group time; the same and declared pauses, in run time. */
  readonly groupGaps = new Allowances();
  readonly runPauses = new Allowances();
  readonly memory: Memory;
  readonly #configs: BookOptions['configs'];
  readonly #delayed: Set<NameBook> = new Set();
  #takeOvers: number[] = [];

  constructor(options: BookOptions) {
    this.memory = new Memory(options.rememberedRequests, options.lastLook);
    this.#configs = options.configs;
    this.config = options.configs === undefined ? undefined : null;
  }

  beginEntry(entry: HistoryEntry, runAt: number): void {
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
    this.touched.clear();
    this.#sweepDelays();
  }

  sawRunTime(runAt: number): void {
    if (runAt > this.lastRunAt) this.lastRunAt = runAt;
  }

  /** All sessions and holds of the lineage before are over (rule S10); tokens go on rising. */
  #beginLineage(lineage: string): void {
    for (const session of this.sessions.values()) {
      if (session.state !== 'ended') this.memory.addEndedSession(session);
      session.state = 'ended';
      for (const request of [...session.holds, ...session.waits]) {
        request.state = 'ended';
        this.memory.addEndedRequest(request);
      }
      session.holds.clear();
      session.waits.clear();
    }
    this.names.clear();
    this.#delayed.clear();
    this.sessions = this.memory.sessionsOf(lineage);
    this.lineage = lineage;
    this.epoch = 0;
    this.at = 0;
    this.eventHash = '';
    this.version = 0;
    this.config = this.#configs === undefined ? undefined : null;
    this.takeOver = null;
    this.highestSession = 0;
    this.totalHolds = 0;
    this.totalWaits = 0;
    this.openSessions = 0;
  }

  /** A delay that ran out with nobody waiting leaves no event: the name is dropped by time. */
  #sweepDelays(): void {
    for (const name of this.#delayed) {
      if (name.delayed !== null && name.delayedUntil > this.at) return;
      this.#delayed.delete(name);
      this.dropIfNothingRemains(name);
    }
  }

  setDelay(name: NameBook, placed: PlacedEvent, until: number): void {
    name.delayed = placed;
    name.delayedUntil = until;
    this.#delayed.delete(name);
    this.#delayed.add(name);
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
  }

  /** Undefined: unknown, because the configuration is. No namespace: 0. */
  get lockDelayMs(): number | undefined {
    return this.config === undefined ? undefined : (this.config?.lockDelayMs ?? 0);
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
    return page;
  }

  request(session: SessionId, key: string): RequestBook | undefined {
    return this.sessions.get(session)?.requests.get(key);
  }

  hold(name: string, token: Token): RequestBook | undefined {
    return this.names.get(name)?.holds.find((request) => request.token === token);
  }

  /** Everything that is waiting, held, or ended and remembered. */
  *requests(): Iterable<RequestBook> {
    for (const { holds, queue } of this.names.values()) {
      yield* holds;
      yield* queue;
    }
    for (const request of this.memory.endedRequests()) {
      if (request.state !== 'held' && request.state !== 'waiting') yield request;
    }
  }
}
