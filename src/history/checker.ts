/**
 * The checker: reads the committed events of a group and the records of its clients as they come, and says which promise
 * was broken (design section 9). The same checker judges simulations, chaos runs and production histories.
 * It shares no code with the state machine: it knows the promises, not how they are kept.
 */
import type { NamespaceConfig } from '../api/config.ts';
import type { HistoryEntry, Token } from '../api/entry.ts';
import { Book } from './book/book.ts';
import { REMEMBERED_REQUESTS_DEFAULT, type Subject } from './book/memory.ts';
import { Notes } from './book/note.ts';
import { takeEvent } from './book/take.ts';
import { allProperties, NEEDS_THE_SESSION, propertiesFromTheMiddle } from './properties/all.ts';
import type { Finding, FinishOptions, Property, Report } from './property.ts';
import type { ClientRecord, RunRecord } from './records.ts';
import {
  type Counts,
  type PlacedEvent,
  PROPERTY_NAMES,
  type PropertyName,
  type Verdict,
  type Violation,
} from './verdict.ts';

const VIOLATIONS_MAX_DEFAULT = 100;

export interface CheckerOptions {
  /** What each `configured(version)` stored. Without it limits and the length of lock-delays are not judged. */
  readonly configs?: ReadonlyMap<number, NamespaceConfig | null>;
  /** Run time = group time + this, for entries given without their run time (default 0). */
  readonly groupTimeOffsetMs?: number;
  /**
   * Ended requests remembered for repeats of keys and for client records that come late (default 200,000).
   * Records about older ones are counted as unjudged.
   */
  readonly rememberedRequests?: number;
  /** Violations listed in the verdict; more are only counted (default 100). */
  readonly violationsMax?: number;
  /** The record does not begin with entry 1: what depends on the time before is not judged, and `notJudged` says what that is. */
  readonly startsInMiddle?: boolean;
  /** The highest token that is known of the time before the record. */
  readonly aboveToken?: Token;
}

interface Judge {
  readonly property: Property;
  readonly report: Report;
}

export class HistoryChecker {
  readonly #book: Book;
  readonly #notes: Notes;
  readonly #judges: readonly Judge[];
  readonly #eventJudges: readonly Judge[];
  readonly #offsetMs: number;
  readonly #violationsMax: number;
  readonly #violations: Violation[] = [];
  readonly #counts: { -readonly [K in keyof Counts]: Counts[K] } = {
    entries: 0,
    events: 0,
    grants: 0,
    queued: 0,
    sessions: 0,
    takeOvers: 0,
    clientRecords: 0,
    unjudgedRecords: 0,
    violations: 0,
  };
  readonly #isPartial: boolean;
  #finished = false;

  constructor(options: CheckerOptions = {}) {
    this.#book = new Book({
      configs: options.configs,
      rememberedRequests: options.rememberedRequests ?? REMEMBERED_REQUESTS_DEFAULT,
      lastLook: (subject) => this.#lastLook(subject),
    });
    this.#notes = new Notes(this.#book);
    this.#offsetMs = options.groupTimeOffsetMs ?? 0;
    this.#violationsMax = options.violationsMax ?? VIOLATIONS_MAX_DEFAULT;
    this.#isPartial = options.startsInMiddle ?? false;
    this.#book.highestToken = options.aboveToken ?? 0;
    const properties = this.#isPartial ? propertiesFromTheMiddle() : allProperties();
    this.#judges = properties.map((property) => ({
      property,
      report: (finding) => this.#report(property, finding),
    }));
    this.#eventJudges = this.#judges.filter(({ property }) => property.onEvent !== undefined);
  }

  /**
   * The next committed entry. `runAt`: when its leader built it, in run time, if the run knows it: an offset alone is wrong once
   * group time has stood still, as it does while nobody leads.
   */
  entry(entry: HistoryEntry, runAt: number = entry.at + this.#offsetMs): void {
    this.#assertReading();
    const book = this.#book;
    for (const { property, report } of this.#judges) property.onEntry?.(entry, book, report);
    book.beginEntry(entry, runAt);
    this.#counts.entries += 1;
    const { lineage, epoch, index, at } = entry;
    for (const event of entry.events) this.#event({ lineage, epoch, index, at, runAt, event });
    for (const { property, report } of this.#judges) property.onEntryEnd?.(book, report);
  }

  /** A client's record; records.ts says when it may be given. */
  client(record: ClientRecord): void {
    this.#assertReading();
    this.#counts.clientRecords += 1;
    this.#book.sawRunTime(latestTime(record));
    this.#note(record);
  }

  /** A record of the run itself. */
  run(record: RunRecord): void {
    this.#assertReading();
    if (record.type === 'pause') this.#book.runPauses.add(record.from, record.to, record.extraMs);
    for (const { property, report } of this.#judges) property.onRun?.(record, report);
  }

  /** The properties that are left out. */
  get notJudged(): readonly PropertyName[] {
    const judged = new Set(this.#judges.map(({ property }) => property.name));
    return PROPERTY_NAMES.filter((name) => !judged.has(name));
  }

  get highestToken(): Token {
    return this.#book.highestToken;
  }

  /** The verdict so far; what only the end can show is not judged yet. */
  verdict(): Verdict {
    const ok = this.#counts.violations === 0;
    return { ok, violations: [...this.#violations], counts: { ...this.#counts } };
  }

  /** Judges what only the end can show. Nothing can be given to the checker after it. */
  finish(options: FinishOptions = {}): Verdict {
    this.#assertReading();
    const book = this.#book;
    for (const request of book.requests()) this.#lastLook(request);
    for (const grant of book.grants()) this.#lastLook(grant);
    for (const session of book.memory.allSessions()) this.#lastLook(session);
    const parked = [...this.#notes.parked()];
    for (const { property, report } of this.#judges) {
      for (const record of parked) property.onUnfounded?.(record, 'parked', report);
      property.onFinish?.(options, book, report);
    }
    this.#finished = true;
    return this.verdict();
  }

  #event(placed: PlacedEvent): void {
    const { event } = placed;
    for (const { property, report } of this.#eventJudges) property.onEvent?.(placed, this.#book, report);
    takeEvent(this.#book, placed);
    this.#counts.events += 1;
    switch (event.type) {
      case 'granted':
        this.#counts.grants += 1;
        for (const record of this.#notes.unpark(event)) this.#note(record);
        return;
      case 'sessionOpened':
        this.#counts.sessions += 1;
        for (const record of this.#notes.unpark(event)) this.#note(record);
        return;
      case 'queued':
        this.#counts.queued += 1;
        return;
      case 'tookOver':
        this.#counts.takeOvers += 1;
        return;
      default:
    }
  }

  #note(record: ClientRecord): void {
    const note = this.#notes.note(record);
    if (note.outcome === 'unjudged') this.#counts.unjudgedRecords += 1;
    for (const { property, report } of this.#judges) {
      if (note.outcome === 'noted') property.onClient?.(record, note, report);
      if (note.outcome === 'neverGranted') property.onUnfounded?.(record, 'neverGranted', report);
    }
  }

  #lastLook(subject: Subject): void {
    for (const { property, report } of this.#judges) {
      if (subject.kind === 'request') property.onLastRequest?.(subject, this.#book, report);
      else if (subject.kind === 'grant') property.onLastGrant?.(subject, this.#book, report);
      else property.onLastSession?.(subject, this.#book, report);
    }
  }

  #report({ name: property, rules }: Property, finding: Finding): void {
    const shown = (finding.shows ?? []).filter((placed) => placed != null);
    if (this.#isPartial && NEEDS_THE_SESSION.has(property) && !shown.every((one) => this.#knows(one))) return;
    this.#counts.violations += 1;
    if (this.#violations.length >= this.#violationsMax) return;
    const excerpt = [...new Set(shown)].sort((a, b) => a.runAt - b.runAt || a.index - b.index);
    const indexes = [...excerpt.map((placed) => placed.index), ...(finding.indexes ?? [])];
    const { name, tokens = [], message } = finding;
    this.#violations.push({
      property,
      rules,
      ...(name === undefined ? {} : { name }),
      tokens,
      indexes: [...new Set(indexes)].sort((a, b) => a - b),
      message,
      excerpt,
    });
  }

  /** Whether the record has the session of the event from its beginning. */
  #knows({ event }: PlacedEvent): boolean {
    if (!('session' in event) || event.type === 'sessionOpened') return true;
    return this.#book.sessions.get(event.session)?.opened != null;
  }

  #assertReading(): void {
    if (this.#finished) throw new Error('the checker has given its verdict already');
  }
}

/** The latest moment a record proves the run to have reached. */
function latestTime(record: ClientRecord): number {
  switch (record.type) {
    case 'keepaliveAcknowledged':
      return record.sentAt;
    case 'heldInterval':
      return record.to;
    default:
      return record.at;
  }
}
