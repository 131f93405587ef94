import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../api/entry.ts';
import { AssertionError } from '../../core/index.ts';
import { LiveEntries } from './live-entries.ts';

function entry(index: number, events = 0): HistoryEntry {
  const event = { type: 'sessionEnded' as const, session: 1 };
  const place = { lineage: 'l', epoch: 1, index, at: index, wallMs: 0, eventHash: '' };
  return { ...place, events: Array.from({ length: events }, () => event) };
}

function filled(...entries: readonly HistoryEntry[]): LiveEntries {
  const live = new LiveEntries();
  for (const one of entries) live.push(one);
  return live;
}

test('gives what comes after the last one, each once', () => {
  const live = filled(entry(4), entry(5), entry(6));
  expect(live.take(4)?.index).toBe(5);
  expect(live.take(5)?.index).toBe(6);
  expect(live.take(6)).toBeNull();
  live.push(entry(7));
  expect(live.take(6)?.index).toBe(7);
});

test('a reader that fell behind what is kept is told from where to read on, never shown a gap', () => {
  const live = filled(entry(1, 9_000), entry(2, 9_000), entry(3, 9_000));
  expect(() => live.take(0)).toThrow('read on from 1');
  // Whoever has read the dropped one elsewhere, from the log, can go on.
  expect(live.take(1)?.index).toBe(2);
});

test('entries without events are bounded, too', () => {
  const live = new LiveEntries();
  for (let index = 1; index <= 20_001; index++) live.push(entry(index));
  expect(() => live.take(0)).toThrow('read on from 1');
  expect(live.take(1)?.index).toBe(2);
});

test('a gap is a fault of this program', () => {
  expect(() => filled(entry(3)).take(1)).toThrow(AssertionError);
});

test('wakes whoever waits, on a push and on request', async () => {
  const live = new LiveEntries();
  const pushed = live.changed();
  live.push(entry(1));
  await pushed;
  const woken = live.changed();
  live.wake();
  await expect(woken).resolves.toBeUndefined();
});
