/** Exports in pieces: each is judged for itself, tokens over all of them, and what is left open is said. */
import { expect, test } from 'vitest';
import type { LockEvent } from '../../api/entry.ts';
import type { HistoryLine } from '../../history/read.ts';
import { Judging } from './judging.ts';

function entry(index: number, events: readonly LockEvent[] = [], lineage = 'l', epoch = 1): HistoryLine {
  return {
    type: 'entry',
    entry: { lineage, epoch, index, at: index, wallMs: 0, eventHash: '', events: [...events] },
  };
}

const tookOver = (token: number, epoch = 1): LockEvent => ({
  type: 'tookOver',
  epoch,
  token,
  reason: 'test',
});
const granted = (token: number): LockEvent => ({
  type: 'granted',
  name: 'a',
  session: 1,
  key: `k${token}`,
  token,
  mode: 'exclusive',
  permits: 1,
  owner: 'w',
  joined: false,
  fromQueue: false,
  waitedMs: 0,
});
const gap: HistoryLine = { type: 'gap', lineage: 'l', from: 3, to: 9 };

function judged(...lines: readonly HistoryLine[]) {
  const judging = new Judging();
  for (const line of lines) judging.take(line);
  return judging.finish();
}

test('a whole history is one piece, and nothing is left open', () => {
  const { ok, parts, counts } = judged(entry(1, [tookOver(1_000)]), entry(2));
  expect({ ok, entries: counts.entries }).toEqual({ ok: true, entries: 2 });
  expect(parts).toEqual([{ lineage: 'l', from: 1, to: 2, missingBefore: null, notJudged: [] }]);
});

test('a gap parts a history in two, and says which', () => {
  const { ok, parts, counts } = judged(entry(1, [tookOver(1_000)]), entry(2), gap, entry(10), entry(11));
  expect({ ok, entries: counts.entries }).toEqual({ ok: true, entries: 4 });
  expect(parts[1]).toMatchObject({ from: 10, to: 11, missingBefore: { from: 3, to: 9 } });
  expect(parts[1]?.notJudged).toContain('bookkeeping');
});

test('a token that goes back is found over a gap, and over lineages', () => {
  const first = entry(1, [tookOver(1_000)]);
  expect(judged(first, entry(2), gap, entry(10, [granted(900)])).violations).toMatchObject([
    { property: 'rising-tokens', tokens: [1_000, 900], indexes: [10] },
  ]);
  expect(judged(first, entry(1, [tookOver(999)], 'm')).violations).toMatchObject([
    { property: 'rising-tokens' },
  ]);
  const good = judged(first, entry(1, [tookOver(2_000)], 'm'));
  expect(good.ok).toBe(true);
  expect(good.parts.map(({ lineage }) => lineage)).toEqual(['l', 'm']);
});

test('gaps with nothing of their lineage after them are said, and gaps in a row are one', () => {
  const first = [entry(1, [tookOver(1_000)]), entry(2)];
  const more: HistoryLine = { type: 'gap', lineage: 'l', from: 10, to: 12 };
  const atEnd = judged(...first, gap, more);
  expect(atEnd.missingAtEnd).toEqual([{ lineage: 'l', from: 3, to: 12 }]);
  const inTheMiddle = judged(...first, gap, more, entry(13));
  expect(inTheMiddle).toMatchObject({
    missingAtEnd: [],
    parts: [{}, { missingBefore: { from: 3, to: 12 } }],
  });
  const ofTheLast = judged(...first, gap, entry(1, [tookOver(2_000)], 'm'));
  expect(ofTheLast.missingAtEnd).toEqual([{ lineage: 'l', from: 3, to: 9 }]);
  expect(ofTheLast.parts[1]).toMatchObject({ lineage: 'm', missingBefore: null, notJudged: [] });
});

test('entries of two groups are refused, since each counts its tokens for itself', () => {
  const judging = new Judging();
  judging.take({ ...entry(1, [tookOver(2_000)]), group: 'a' });
  judging.take({ ...entry(2), group: 'a' });
  expect(() => judging.take({ ...entry(1, [tookOver(1_000)], 'm'), group: 'b' })).toThrow(
    'one group at a time',
  );
});

test('a hole that nobody speaks of is a violation', () => {
  const { violations } = judged(entry(1, [tookOver(1_000)]), entry(2), entry(5));
  expect(violations).toMatchObject([{ property: 'event-order', indexes: [5] }]);
});
