/** Reading history files: whole and strict. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HistoryEntry } from '../api/entry.ts';
import { begun, granted, queued, released } from './history.fixture.ts';
import { RandomHistory, steps } from './random-histories.fixture.ts';
import { HistoryFormatError, parseHistoryLine, readHistory } from './read.ts';

const entry: HistoryEntry = {
  lineage: 'lineage-1',
  epoch: 1,
  index: 2,
  at: 5,
  wallMs: 1_790_000_000_000,
  eventHash: 'ab'.repeat(32),
  events: [granted(7, 1), queued('k', 2, 1), released(7, 1)],
};

async function read(lines: readonly string[]): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  for await (const read of readHistory(lines)) entries.push(read);
  return entries;
}

it('reads back what was written, whatever the events', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (script) => {
      const { history } = new RandomHistory(script).group;
      expect(await read(history.map((one) => JSON.stringify(one)))).toEqual(history);
    }),
    { numRuns: 100, seed: 1 },
  );
});

it('skips empty lines and still counts them', async () => {
  const line = JSON.stringify(entry);
  expect(await read([line, '', '  ', line])).toEqual([entry, entry]);
  await expect(read([line, '', '{}'])).rejects.toThrow('line 3: ');
});

it('takes lines from an asynchronous source', async () => {
  async function* source(): AsyncGenerator<string> {
    yield* [JSON.stringify(entry)];
  }
  const entries: HistoryEntry[] = [];
  for await (const one of readHistory(source())) entries.push(one);
  expect(entries).toEqual([entry]);
});

it.each([
  ['no JSON', '{"lineage":', 'not JSON'],
  ['another thing than an entry', '[]', 'the entry: '],
  ['a missing field', JSON.stringify({ ...entry, epoch: undefined }), 'epoch: it is missing; it is a number'],
  ['a field too many', JSON.stringify({ ...entry, extra: 1 }), 'extra: there is no such key'],
  ['index 0', JSON.stringify({ ...entry, index: 0 }), 'index: '],
  ['a broken index', JSON.stringify({ ...entry, index: 1.5 }), 'index: '],
  ['a time below 0', JSON.stringify({ ...entry, at: -1 }), 'at: '],
  ['an empty lineage', JSON.stringify({ ...entry, lineage: '' }), 'lineage: '],
  [
    'a hash that is none',
    JSON.stringify({ ...entry, eventHash: 'xyz' }),
    'eventHash: expected 64 hex digits',
  ],
  ['an unknown event', JSON.stringify({ ...entry, events: [{ type: 'stolen' }] }), 'events.0.type: '],
  [
    'an event without its token',
    JSON.stringify({ ...entry, events: [granted(7, 1), { ...released(7, 1), token: undefined }] }),
    'events.1.token: ',
  ],
  [
    'a field too many in an event',
    JSON.stringify({ ...entry, events: [{ ...released(7, 1), by: 'me' }] }),
    'events.0.by: there is no such key in one of this kind',
  ],
  [
    'a token that is text',
    JSON.stringify({ ...entry, events: [{ ...released(7, 1), token: '7' }] }),
    'events.0.token: ',
  ],
  ['token 0 of a grant', JSON.stringify({ ...entry, events: [granted(0, 1)] }), 'events.0.token: '],
  ['a token beyond 2^53', JSON.stringify({ ...entry, events: [granted(2 ** 54, 1)] }), 'events.0.token: '],
  [
    'an unknown cause',
    JSON.stringify({ ...entry, events: [{ ...released(7, 1), cause: 'whim' }] }),
    'events.0.cause: ',
  ],
])('refuses %s and names the line', (_what, text, message) => {
  expect(() => parseHistoryLine(text, 12)).toThrow(HistoryFormatError);
  expect(() => parseHistoryLine(text, 12)).toThrow(`line 12: ${message}`);
});

it('gives the checker what it needs', async () => {
  const history = begun().entry(granted(1_001, 1));
  const lines = history.steps.flatMap((step) => (step.kind === 'entry' ? [JSON.stringify(step.entry)] : []));
  expect(await read(lines)).toHaveLength(2);
});
