/** The book's memory: what it drops, and what it must not drop. */
import { expect, it } from 'vitest';
import type { LockEvent } from '../../api/entry.ts';
import { TRANSITIONS_PER_ENTRY_MAX } from '../../api/limits.ts';
import {
  cancelled,
  delayed,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  opened,
  quarantined,
  queued,
  refused,
  released,
} from '../history.fixture.ts';
import { Book } from './book.ts';
import type { Subject } from './memory.ts';
import { Notes } from './note.ts';
import type { GrantBook, RequestBook } from './subjects.ts';
import { takeEvent } from './take.ts';

interface Open {
  readonly book: Book;
  readonly lastLooks: Subject[];
  readonly names: () => string[];
  readonly entry: (at: number, ...events: LockEvent[]) => void;
}

function openBook(rememberedRequests = 100): Open {
  const lastLooks: Subject[] = [];
  const book = new Book({
    configs: undefined,
    rememberedRequests,
    lastLook: (subject) => lastLooks.push(subject),
  });
  let index = 0;
  const entry: Open['entry'] = (at, ...events) => {
    index += 1;
    const place = { lineage: 'l', epoch: 1, index, at };
    book.beginEntry({ ...place, wallMs: 0, eventHash: '', events }, at);
    for (const event of events) takeEvent(book, { ...place, runAt: at, event });
  };
  entry(0, opened(1), opened(2), opened(3));
  return { book, lastLooks, names: () => [...book.names.keys()], entry };
}

const tokenOf = (subject: RequestBook | GrantBook): number | undefined =>
  subject.kind === 'grant' ? subject.token : subject.grant?.token;

it('drops a name with its last hold or wait, at once', () => {
  const { names, entry } = openBook();
  entry(0, granted(1, 1), queued('q2', 2, 1), queued('q3', 3, 2));
  expect(names()).toEqual(['a']);
  entry(0, released(1, 1));
  expect(names()).toEqual(['a']);
  entry(0, cancelled('q2', 2));
  expect(names()).toEqual(['a']);
  entry(0, refused('q3', 3));
  expect(names()).toEqual([]);
});

it('drops a delayed name when its time has come, in whatever order the delays end', () => {
  const { names, entry } = openBook();
  entry(0, granted(1, 1), granted(2, 1, 'b'), ending(1));
  entry(0, expired(1, 1), delayed(500), expired(2, 1, 'b'), { ...delayed(300), name: 'b' } as LockEvent);
  entry(299);
  expect(names()).toEqual(['a', 'b']);
  entry(499);
  expect(names()).toContain('a');
  entry(500);
  expect(names()).toEqual([]);
});

// Seed 85 of the simulator, 0.05 h, with one consequence an entry: a waiter was taken for forgotten.
it('rule C1: lock-delays that end with nobody waiting use up the budget of later entries too', () => {
  const { book, entry } = openBook();
  for (let token = 1; token <= 2 * TRANSITIONS_PER_ENTRY_MAX + 1; token++) {
    const name = `n${token}`;
    entry(0, granted(token, 1, name), expired(token, 1, name), { ...delayed(300), name } as LockEvent);
  }
  const mayBeFull: boolean[] = [];
  for (let i = 0; i < 3; i++) {
    entry(300);
    mayBeFull.push(book.mayBeFull);
  }
  expect(mayBeFull).toEqual([true, true, false]);
});

it('keeps a name that is used again after its delay', () => {
  const { book, names, entry } = openBook();
  entry(0, granted(1, 1), queued('q2', 2, 1), ending(1), expired(1, 1), delayed(300));
  entry(300, grantedFromQueue(2, 2, 'q2', 300));
  entry(900);
  expect(names()).toEqual(['a']);
  expect([...(book.hold('a', 2)?.keys ?? [])]).toEqual(['q2']);
  expect(book.names.get('a')?.delayed).toBeNull();
});

it('keeps a quarantined name until the quarantine ends', () => {
  const { names, entry } = openBook();
  entry(0, quarantined);
  entry(1_000);
  expect(names()).toEqual(['a']);
  entry(1_000, { type: 'unquarantined', name: 'a', by: 'operator' });
  expect(names()).toEqual([]);
});

it('forgets the oldest ended requests, after a last look', () => {
  const { book, lastLooks, entry } = openBook(2);
  for (let token = 1; token <= 4; token++)
    entry(0, granted(token, 1, `n${token}`), released(token, 1, `n${token}`));
  entry(0, granted(5, 2, 'n3'));
  const looks = lastLooks.map((subject) => (subject.kind === 'session' ? subject.id : tokenOf(subject)));
  expect(looks).toEqual([1, 1, 2, 2]);
  expect(book.memory.granted(2)).toBeUndefined();
  expect(book.memory.lastGrant('n2')).toBeUndefined();
  expect(book.request(1, 'key-2')).toBeUndefined();
  expect(book.memory.mayHaveForgotten(2)).toBe(true);
  expect(book.memory.mayHaveForgotten(3)).toBe(false);
  entry(0, granted(6, 1, 'n6'), released(6, 1, 'n6'));
  // Token 3 is forgotten now; the grant that came after it on the same name is not.
  expect(book.memory.lastGrant('n3')?.token).toBe(5);
  expect([...book.requests()].map(tokenOf)).toEqual([5, 4, 6]);
  expect([...book.grants()].map(tokenOf)).toEqual([5, 4, 6]);
});

it('does not forget a request that came to life after a record spoke of it', () => {
  const { book, lastLooks, entry } = openBook(1);
  const notes = new Notes(book);
  notes.note({ type: 'cancelConfirmed', lineage: 'l', session: 1, key: 'key-1', at: 0 });
  entry(0, granted(1, 1), granted(2, 2, 'b'), released(2, 2, 'b'), granted(3, 2, 'c'), released(3, 2, 'c'));
  expect(lastLooks).toMatchObject([
    { kind: 'request', key: 'key-2' },
    { kind: 'grant', token: 2 },
  ]);
  expect(book.request(1, 'key-1')?.state).toBe('held');
});

it('forgets the oldest ended sessions, and calls records about them unjudged', () => {
  const { book, entry } = openBook();
  for (let id = 4; id < 20_010; id++) entry(0, opened(id), ending(id, 'closed'), ended(id));
  expect(book.sessions.has(4)).toBe(false);
  expect(book.sessions.has(1)).toBe(true);
  expect(book.openSessions).toBe(3);
  const notes = new Notes(book);
  const keepalive = { type: 'keepaliveAcknowledged', lineage: 'l', sentAt: 0, ttlMs: 1 } as const;
  expect(notes.note({ ...keepalive, session: 4 }).outcome).toBe('unjudged');
  expect(notes.note({ ...keepalive, session: 20_009 }).outcome).toBe('noted');
  expect(notes.note({ ...keepalive, session: 20_010 }).outcome).toBe('parked');
  expect(notes.note({ ...keepalive, lineage: 'other', session: 4 }).outcome).toBe('parked');
  entry(0, opened(20_010));
  expect(notes.unpark({ session: 20_010 })).toHaveLength(1);
  expect(notes.unpark({ session: 20_010 })).toHaveLength(0);
});

it('calls records about forgotten grants unjudged, about passed-over tokens never granted, about later ones parked', () => {
  const { book, entry } = openBook(1);
  entry(0, granted(1, 1), released(1, 1), granted(3, 1, 'b'), released(3, 1, 'b'), granted(5, 1, 'c'));
  const notes = new Notes(book);
  const outcome = (token: number): string =>
    notes.note({ type: 'lost', lineage: 'l', session: 1, name: 'a', token, at: 0 }).outcome;
  expect([1, 2, 3, 4, 5, 6].map(outcome)).toEqual([
    'unjudged',
    'neverGranted',
    'noted',
    'neverGranted',
    'noted',
    'parked',
  ]);
});

it('keeps a bounded number of parked records and of stops', () => {
  const { book } = openBook();
  const notes = new Notes(book);
  const stopped = { type: 'clientStopped', lineage: 'l', at: 0 } as const;
  for (let i = 0; i < 100_000; i++) notes.note({ ...stopped, session: 9 });
  expect(notes.note({ ...stopped, session: 9 }).outcome).toBe('unjudged');
  for (let i = 0; i < 1_500; i++) notes.note({ ...stopped, session: 1 });
  expect(book.sessions.get(1)?.stops).toHaveLength(1_000);
});

it('keeps of a shared name that somebody holds for long no more grants than it remembers', () => {
  const { book, entry } = openBook(10);
  entry(0, granted(1, 1, 'a', { mode: 'shared' }));
  for (let token = 2; token < 1_000; token++) {
    entry(token, granted(token, 2, 'a', { mode: 'shared' }), released(token, 2));
  }
  let after = 0;
  for (let grant = book.hold('a', 1)?.next ?? null; grant !== null; grant = grant.next) after += 1;
  expect(after).toBe(10);
  entry(1_000, granted(1_000, 3, 'b'), released(1_000, 3, 'b'));
  for (let token = 1_001; token < 1_020; token++) {
    entry(token, granted(token, 3, 'b'), released(token, 3, 'b'));
  }
  expect(book.memory.lastGrant('a')?.token).toBe(1);
  expect(book.hold('a', 1)?.next).toBeNull();
});

it('counts no time without commits of the lineage before', () => {
  const { book, entry } = openBook();
  entry(10_000);
  expect(book.groupGaps.within(1_000, 9_000)).toBe(8_000);
  book.beginEntry({ lineage: 'm', epoch: 1, index: 1, at: 0, wallMs: 0, eventHash: '', events: [] }, 10_000);
  expect(book.groupGaps.within(1_000, 9_000)).toBe(0);
});
