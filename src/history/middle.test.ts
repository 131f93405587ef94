/** Histories that do not begin with entry 1: what shows within them is still refused, and what is not judged is said. */
import { describe, expect, it, test } from 'vitest';
import type { HistoryEntry } from '../api/entry.ts';
import { HistoryChecker } from './checker.ts';
import {
  begun,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  type History,
  opened,
  queued,
  released,
} from './history.fixture.ts';

const entriesOf = ({ steps }: History): HistoryEntry[] =>
  steps.flatMap((step) => (step.kind === 'entry' ? step.entry : []));

function fromMiddle(history: History, skip = 1) {
  const checker = new HistoryChecker({ startsInMiddle: true });
  for (const entry of entriesOf(history).slice(skip)) checker.entry(entry);
  return checker.finish();
}

const cases: Record<string, readonly [string, () => History]> = {
  'two holders of a name, granted within it': [
    'exclusion',
    () => begun().entry(granted(1_001, 1)).entry(granted(1_002, 2)),
  ],
  'a token that goes back': [
    'rising-tokens',
    () => begun().entry(granted(1_005, 1)).entry(released(1_005, 1)).entry(granted(1_004, 2)),
  ],
  'a waiter that is passed': [
    'fifo',
    () =>
      begun()
        .entry(granted(1_001, 1))
        .entry(queued('q2', 2, 1), queued('q3', 3, 2))
        .entry(released(1_001, 1), grantedFromQueue(1_002, 3, 'q3', 0)),
  ],
  'a grant to a session that was opened and has ended': [
    'no-ghost-grants',
    () => begun().entry(opened(9)).entry(ending(9, 'closed'), ended(9)).entry(granted(1_001, 9)),
  ],
};

describe('what shows within it', () => {
  it.each(Object.entries(cases))('refuses %s', (_title, [property, make]) => {
    const verdict = fromMiddle(make());
    expect(verdict.violations.map((violation) => violation.property)).toContain(property);
  });

  it('refuses an entry that is left out', () => {
    const history = begun().entry(granted(1_001, 1)).pass(1_000);
    const checker = new HistoryChecker({ startsInMiddle: true });
    for (const entry of entriesOf(history)) if (entry.index !== 3) checker.entry(entry);
    expect(checker.finish().violations.map(({ property }) => property)).toContain('event-order');
  });
});

test('what began before it is no violation', () => {
  const history = begun()
    .entry(granted(1_001, 1))
    .entry(queued('q2', 2, 1))
    .pass(15_000)
    .entry(ending(1), expired(1_001, 1), ended(1), grantedFromQueue(1_002, 2, 'q2', 15_000));
  for (let skip = 1; skip < entriesOf(history).length; skip++) {
    expect(fromMiddle(history, skip).violations).toEqual([]);
  }
});

test('a token must be above those that are known of the time before', () => {
  const history = begun().entry(granted(1_001, 1));
  const checker = new HistoryChecker({ startsInMiddle: true, aboveToken: 5_000 });
  for (const entry of entriesOf(history).slice(1)) checker.entry(entry);
  expect(checker.finish().violations.map(({ property }) => property)).toEqual(['rising-tokens']);
});

test('it says what is not judged', () => {
  expect(new HistoryChecker({ startsInMiddle: true }).notJudged).toEqual([
    'freed-in-time',
    'durability',
    'belief',
    'loss-is-told',
    'limits',
    'bookkeeping',
    'liveness',
  ]);
  expect(new HistoryChecker().notJudged).toEqual([]);
});
