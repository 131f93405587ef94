/**
 * The shape of one property: it is shown every event before the book takes it in, and reports what contradicts it.
 * Properties never see each other, so that one broken promise is reported by the property that names it.
 */
import type { HistoryEntry, Token } from '../api/entry.ts';
import type { Book } from './book/book.ts';
import type { GrantBook, RequestBook, SessionBook } from './book/subjects.ts';
import type { ClientRecord, RunRecord } from './records.ts';
import type { PlacedEvent, PropertyName } from './verdict.ts';

export interface Finding {
  readonly message: string;
  readonly name?: string;
  readonly tokens?: readonly Token[];
  /** Events that show it; absent ones are skipped. */
  readonly shows?: readonly (PlacedEvent | null | undefined)[];
  /** Entries that show it without an event. */
  readonly indexes?: readonly number[];
}

export type Report = (finding: Finding) => void;

export interface FinishOptions {
  /** Everything had come to rest when the run ended: every wait must be over (default false). */
  readonly quiet?: boolean;
  /** All clients had gone and one TTL had passed: no session, hold or wait may be left (default false). */
  readonly clientsGone?: boolean;
}

/** What a client record speaks of. */
interface Noted {
  readonly session: SessionBook;
  readonly request: RequestBook | null;
  readonly grant: GrantBook | null;
}

/** What never became part of the record: `neverGranted` for certain, `parked` was still waiting at the end. */
type Unfounded = 'neverGranted' | 'parked';

export interface Property {
  readonly name: PropertyName;
  readonly rules: string;
  /** Before the book takes the entry in. */
  onEntry?(entry: HistoryEntry, book: Book, report: Report): void;
  /** Before the book takes the event in. */
  onEvent?(placed: PlacedEvent, book: Book, report: Report): void;
  onEntryEnd?(book: Book, report: Report): void;
  /** After the book has noted the record. */
  onClient?(record: ClientRecord, noted: Noted, report: Report): void;
  onUnfounded?(record: ClientRecord, why: Unfounded, report: Report): void;
  onRun?(record: RunRecord, report: Report): void;
  /** The last look at a request before it is forgotten, or at the end of the run. */
  onLastRequest?(request: RequestBook, book: Book, report: Report): void;
  onLastGrant?(grant: GrantBook, book: Book, report: Report): void;
  onLastSession?(session: SessionBook, book: Book, report: Report): void;
  onFinish?(options: FinishOptions, book: Book, report: Report): void;
}
