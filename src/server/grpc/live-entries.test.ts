import { expect, test } from 'vitest';
import type { HistoryEntry } from '../../api/entry.ts';
import { LiveEntries } from './live-entries.ts';

function entry(index: number, events = 0): HistoryEntry {
  const event = { type: 'sessionEnded' as const, session: 1 };
  const place = { lineage: 'l', epoch: 1, index, at: index, wallMs: 0, eventHash: '' };
  return { ...place, events: Array.from({ length: events }, () => event) };
}

const indexAfter = (live: LiveEntries, last: number): number | 'gap' | undefined => {
  const taken = live.take(last);
  return taken === 'gap' ? taken : taken?.index;
};

function filled(...entries: readonly HistoryEntry[]): LiveEntries {
  const live = new LiveEntries();
  for (const one of entries) live.push(one);
  return live;
}

test('gives what comes after the last one, each once', () => {
  const live = filled(entry(4), entry(5), entry(6));
  expect(indexAfter(live, 4)).toBe(5);
  expect(indexAfter(live, 5)).toBe(6);
  expect(live.take(6)).toBeNull();
  live.push(entry(7));
  expect(indexAfter(live, 6)).toBe(7);
});

test('a reader that fell behind what is kept is told from where to read on, never shown a gap', () => {
  const live = filled(entry(1, 9_000), entry(2, 9_000), entry(3, 9_000));
  expect(() => live.take(0)).toThrow('read on from 1');
  // Whoever has read the dropped one elsewhere, from the log, can go on.
  expect(indexAfter(live, 1)).toBe(2);
});

test('entries without events are bounded, too', () => {
  const live = new LiveEntries();
  for (let index = 1; index <= 20_001; index++) live.push(entry(index));
  expect(() => live.take(0)).toThrow('read on from 1');
  expect(indexAfter(live, 1)).toBe(2);
});

test('what was committed while nobody told of it is a gap, to be read from the log', () => {
  const live = filled(entry(3), entry(4));
  expect(live.take(1)).toBe('gap');
  expect(indexAfter(live, 3)).toBe(4);
  live.push(entry(7));
  expect(live.take(9)).toBeNull();
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
