/** Exports of several servers as one history. */
import { expect, test } from 'vitest';
import { ContradictionError, mergeHistories } from './merge.ts';
import { type HistoryLine, readExport } from './read.ts';

const entry = (index: number, lineage = 'l', eventHash = ''): HistoryLine => ({
  type: 'entry',
  entry: { lineage, epoch: 1, index, at: index, wallMs: 0, eventHash, events: [] },
});
const gap = (from: number, to: number): HistoryLine => ({ type: 'gap', lineage: 'l', from, to });
const range = (from: number, to: number, lineage = 'l'): HistoryLine[] =>
  Array.from({ length: to + 1 - from }, (_, at) => entry(from + at, lineage));

async function* lines(all: readonly HistoryLine[]): AsyncGenerator<HistoryLine> {
  yield* all;
}

async function merged(...sources: readonly (readonly HistoryLine[])[]): Promise<string> {
  const shown: string[] = [];
  for await (const line of mergeHistories(sources.map(lines))) {
    shown.push(
      line.type === 'gap' ? `gap ${line.from}-${line.to}` : `${line.entry.lineage}${line.entry.index}`,
    );
  }
  return shown.join(' ');
}

test('what comes twice comes once, within a file and across them', async () => {
  expect(await merged([...range(1, 5), ...range(3, 7)])).toBe('l1 l2 l3 l4 l5 l6 l7');
  expect(await merged([...range(1, 3), ...range(7, 8)], range(3, 6))).toBe('l1 l2 l3 l4 l5 l6 l7 l8');
});

test('a hole is passed on as it is', async () => {
  expect(await merged(range(1, 2), range(5, 6))).toBe('l1 l2 l5 l6');
});

test("a gap of one exporter may be another one's entries", async () => {
  expect(await merged([entry(1), gap(2, 6), entry(7)])).toBe('l1 gap 2-6 l7');
  expect(await merged([gap(1, 6), entry(7)], range(3, 4))).toBe('gap 1-2 l3 l4 gap 5-6 l7');
  expect(await merged([gap(1, 3), entry(4)], range(1, 4))).toBe('l1 l2 l3 l4');
});

test('one lineage after the other', async () => {
  expect(await merged([...range(1, 2), ...range(1, 2, 'm')], [...range(2, 3), entry(3, 'm')])).toBe(
    'l1 l2 l3 m1 m2 m3',
  );
});

test('the older lineage first, in whatever order the files are named', async () => {
  const at = (wallMs: number, all: readonly HistoryLine[]): HistoryLine[] =>
    all.map((line) => (line.type === 'gap' ? line : { ...line, entry: { ...line.entry, wallMs } }));
  const [first, second] = [at(10, range(1, 2)), at(20, range(1, 2, 'm'))];
  expect(await merged(second, [...first, ...second])).toBe('l1 l2 m1 m2');
  expect(await merged(second, [gap(1, 1), ...first.slice(1)])).toBe('gap 1-1 l2 m1 m2');
  expect(await merged(second, [gap(1, 2), ...second])).toBe('gap 1-2 m1 m2');
  const third = at(30, range(1, 1, 'n'));
  expect(await merged(third, [...first, ...third], [...first, ...second])).toBe('l1 l2 m1 m2 n1');
});

test('two accounts of one entry that differ are an error', async () => {
  await expect(merged(range(1, 3), [entry(2, 'l', 'f'.repeat(64))])).rejects.toThrow(ContradictionError);
  await expect(merged([...range(1, 3), entry(2, 'l', 'f'.repeat(64))])).rejects.toThrow('entry 2');
});

test('an export may have its group, gaps, and a last line that is not finished', async () => {
  const line = (index: number) =>
    JSON.stringify({
      group: 'g',
      lineage: 'l',
      epoch: 1,
      index,
      at: 0,
      wallMs: 0,
      eventHash: '',
      events: [],
    });
  const gapLine = JSON.stringify({ type: 'gap', group: 'g', lineage: 'l', from: 2, to: 4 });
  const read: HistoryLine[] = [];
  const unfinished: number[] = [];
  for await (const one of readExport([line(1), gapLine, '', '{"group":"g"'], (at) => unfinished.push(at))) {
    read.push(one);
  }
  expect(read).toMatchObject([
    { type: 'entry', entry: { index: 1 } },
    { type: 'gap', from: 2, to: 4 },
  ]);
  expect(unfinished).toEqual([4]);
  const torn = async (): Promise<void> => {
    for await (const _ of readExport(['{"group":"g"', line(1)], () => undefined));
  };
  await expect(torn()).rejects.toThrow('line 1');
});
