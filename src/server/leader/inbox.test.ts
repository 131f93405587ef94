/** What waits for the leader's next entry: rule S9 and the size of entries. */
import { describe, expect, test } from 'vitest';
import { acquireCommand, openCommand, SECRET_HASH } from '../../../test/support/core.ts';
import type { Command } from '../../api/entry.ts';
import { COMMANDS_PER_ENTRY_MAX, ENTRY_BYTES_MAX, NAME_BYTES_MAX } from '../../api/limits.ts';
import type { ReadQuery } from '../../api/wire.ts';
import { encodeEntry } from '../../core/index.ts';
import { Inbox, prepend } from './inbox.ts';
import { NOBODY, Outgoing } from './outbox.ts';

const WAITING_MAX = 20_000;

const acquire = acquireCommand({ session: 1, key: 'k' });
const release: Command = { type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] };
const read: ReadQuery = { type: 'getLock', name: 'a' };

function filled(count: number): Inbox {
  const inbox = new Inbox();
  for (let i = 0; i < count; i++) inbox.push(acquire, NOBODY, i);
  return inbox;
}

describe('rule S9: the queue is bounded for what may be refused', () => {
  test('acquires, opens and reads find no place in a full queue', () => {
    const inbox = filled(WAITING_MAX);
    expect(inbox.push(acquire, NOBODY, 1)).toBe(false);
    expect(inbox.push(openCommand(), NOBODY, 1)).toBe(false);
    expect(inbox.push(read, NOBODY, 1)).toBe(false);
    expect(inbox.push({ type: 'listLocks', prefix: '', after: '', limit: 1 }, NOBODY, 1)).toBe(false);
    expect(inbox.size).toBe(WAITING_MAX);
  });

  test.each<Command>([
    release,
    { type: 'cancel', session: 1, attach: 1, key: 'k', acks: [] },
    { type: 'closeSession', session: 1, attach: 1, clean: true },
    { type: 'attach', session: 1, attach: 2, secretHash: SECRET_HASH },
    { type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'r' },
    { type: 'resign', epoch: 1 },
  ])('$type always finds one', (command) => {
    const inbox = filled(WAITING_MAX);
    expect(inbox.push(command, NOBODY, 7)).toBe(true);
    expect(inbox.size).toBe(WAITING_MAX + 1);
  });

  test('what is taken makes room', () => {
    const inbox = filled(WAITING_MAX);
    const taken = inbox.take().commands.length;
    for (let i = 0; i < taken; i++) expect(inbox.push(acquire, NOBODY, i)).toBe(true);
    expect(inbox.push(acquire, NOBODY, 0)).toBe(false);
  });
});

describe('what comes from a stream that is closed', () => {
  const closed = new Outgoing({ send: () => undefined }, 1);
  closed.isClosed = true;

  test('is done if it gives something back, and dropped if it would be refused anyway', () => {
    const inbox = new Inbox();
    inbox.push(release, closed, 1);
    inbox.push({ ...release, session: 0 }, closed, 2);
    inbox.push({ ...release, attach: 0 }, closed, 3);
    inbox.push({ type: 'cancel', session: 1, attach: 0, key: 'k', acks: [] }, closed, 4);
    inbox.push({ type: 'reportStale', session: 0, name: 'a', token: 1, resource: 'r' }, closed, 5);
    expect(inbox.take().ids).toEqual([1, 5]);
  });

  test('does not fill the queue, while nothing is taken, with releases of streams that come and go', () => {
    const inbox = new Inbox();
    for (let i = 0; i < 20 * WAITING_MAX; i++) inbox.push({ ...release, attach: 0 }, closed, i);
    expect(inbox.size).toBeLessThanOrEqual(2 * WAITING_MAX);
  });
});

describe('one entry', () => {
  test('takes commands in order of arrival, aligned with who asked', () => {
    const inbox = new Inbox();
    const [a, b] = [new Outgoing({ send: () => undefined }, 1), new Outgoing({ send: () => undefined }, 2)];
    inbox.push(acquire, a, 10);
    inbox.push(read, b, 11);
    inbox.push(release, b, 12);
    const batch = inbox.take();
    expect(batch.commands).toEqual([acquire, release]);
    expect(batch.from).toEqual([a, b]);
    expect(batch.ids).toEqual([10, 12]);
    expect(batch.reads).toEqual([{ query: read, to: b, id: 11 }]);
    expect(inbox.size).toBe(0);
    prepend(batch, { type: 'resign', epoch: 1 });
    expect(batch.commands.map(({ type }) => type)).toEqual(['resign', 'acquire', 'release']);
    expect(batch.from[0]).toBe(NOBODY);
    expect(batch.ids).toEqual([0, 10, 12]);
  });

  test('has at most 2,000 commands; nothing is lost or doubled over many of them', () => {
    const inbox = filled(9_999);
    const ids: number[] = [];
    while (inbox.size > 0) {
      const batch = inbox.take();
      expect(batch.commands.length).toBeLessThanOrEqual(COMMANDS_PER_ENTRY_MAX);
      ids.push(...batch.ids);
      if (ids.length === 4_000) inbox.push(acquire, NOBODY, 9_999);
    }
    expect(ids).toEqual(Array.from({ length: 10_000 }, (_, i) => i));
  });

  test('stays below the size of an entry, whatever its texts are', () => {
    const inbox = new Inbox();
    const name = '\u{1f512}'.repeat(NAME_BYTES_MAX / 4);
    const acks = Array.from({ length: 256 }, (_, i) => `${i}`.padStart(64, 'k'));
    const big = acquireCommand({
      session: 1,
      key: 'k'.repeat(64),
      name,
      purpose: '\u{1f512}'.repeat(256),
      acks,
    });
    for (let i = 0; i < 200; i++) inbox.push(big, NOBODY, i);
    let taken = 0;
    while (inbox.size > 0) {
      const { commands } = inbox.take();
      taken += commands.length;
      const { bytes } = encodeEntry({
        format: 1,
        behaviour: 1,
        lineage: 'l',
        epoch: 1,
        index: 1,
        at: 0,
        wallMs: 0,
        previous: 'a'.repeat(64),
        eventHash: 'b'.repeat(64),
        commands,
      });
      expect(bytes.length).toBeLessThanOrEqual(ENTRY_BYTES_MAX);
      expect(commands.length).toBeGreaterThan(0);
    }
    expect(taken).toBe(200);
  });
});

test('reads that wait share an entry, a bounded number of them', () => {
  const inbox = new Inbox();
  for (let i = 0; i < 15_000; i++) inbox.push(read, NOBODY, i);
  const { reads } = inbox.take();
  expect(reads.length).toBeGreaterThan(0);
  expect(reads.length).toBeLessThanOrEqual(COMMANDS_PER_ENTRY_MAX);
});

describe('lists, each of which looks at every name in use', () => {
  const list: ReadQuery = { type: 'listLocks', prefix: '', after: '', limit: 1 };
  const asked = (inbox: Inbox): number[] => inbox.take().reads.map(({ id }) => id);

  test('are spread over entries, in order of arrival, and hold nothing else up', () => {
    const inbox = new Inbox();
    for (let id = 0; id < 3; id++) inbox.push(list, NOBODY, id);
    inbox.push(read, NOBODY, 9);
    inbox.push(release, NOBODY, 10);
    const { commands, reads } = inbox.take();
    expect(commands).toEqual([release]);
    expect(reads.map(({ id }) => id)).toEqual([0, 9]);
    expect(inbox.size).toBe(2);
    expect([asked(inbox), asked(inbox)]).toEqual([[1], [2]]);
    expect(inbox.size).toBe(0);
  });

  test('find no place beside a hundred others, but beside those that nobody waits for', () => {
    const inbox = new Inbox();
    const gone = new Outgoing({ send: () => undefined }, 1);
    for (let id = 0; id < 100; id++) inbox.push(list, id < 98 ? gone : NOBODY, id);
    expect(inbox.push(list, NOBODY, 100)).toBe(false);
    expect(inbox.push(release, NOBODY, 0)).toBe(true);
    gone.isClosed = true;
    expect(inbox.push(list, NOBODY, 101)).toBe(true);
    expect([asked(inbox), asked(inbox), asked(inbox)]).toEqual([[98], [99], [101]]);
  });
});

test('what streams that are closed had asked for does not pile up while nothing is committed', () => {
  const inbox = new Inbox();
  for (let i = 0; i < 150_000; i++) {
    const client = new Outgoing({ send: () => undefined }, i);
    inbox.push({ type: 'attach', session: 1 + (i % 100), attach: i, secretHash: SECRET_HASH }, client, 1);
    if (i % 1_000 === 0) inbox.push(release, client, 2);
    client.isClosed = true;
  }
  expect(inbox.size).toBeLessThan(2 * WAITING_MAX + 1_000);
  let releases = 0;
  while (inbox.size > 0) releases += inbox.take().commands.filter(({ type }) => type === 'release').length;
  // What gives something back is done also when nobody waits for the answer any more.
  expect(releases).toBe(150);
});
