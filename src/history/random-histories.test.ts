/**
 * The checker over histories of the naive model: it accepts them all, and refuses them once an event is doubled or an end is left out.
 * `LEASEHOLD_SEED=<seed>` repeats a run; a failure prints its seed.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HistoryEntry, LockEvent } from '../api/entry.ts';
import { HistoryChecker } from './checker.ts';
import { acquire, expire, modelGroup, namespaceConfig } from './model.fixture.ts';
import { RandomHistory, steps } from './random-histories.fixture.ts';
import type { Verdict } from './verdict.ts';

const RUNS = 500;
const seed = Number(process.env.LEASEHOLD_SEED ?? Date.now() % 2 ** 31);
const parameters = { seed, numRuns: RUNS };

function check(history: RandomHistory, entries: readonly HistoryEntry[]): Verdict {
  const checker = new HistoryChecker({ configs: history.configs });
  for (const entry of entries) checker.entry(entry);
  return checker.finish();
}

it(`accepts every history of the model (seed ${seed})`, () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(steps, fc.constantFrom('before', 'after', 'beside'), (script, order) => {
      const history = new RandomHistory(script);
      const checker = new HistoryChecker({ configs: history.configs });
      history.feed(checker, order);
      expect(checker.finish({ quiet: true, clientsGone: true }).violations).toEqual([]);
      for (const { events } of history.group.history) {
        for (const { type } of events) seen.set(type, (seen.get(type) ?? 0) + 1);
      }
    }),
    parameters,
  );
  // A run that never saw some kind of event would prove nothing about it.
  expect([...seen.keys()].sort()).toEqual([
    'broken',
    'cancelled',
    'configured',
    'delayed',
    'expired',
    'fencingRejected',
    'granted',
    'quarantined',
    'queued',
    'refused',
    'released',
    'revoked',
    'revoking',
    'sessionEnded',
    'sessionEnding',
    'sessionOpened',
    'tookOver',
    'unquarantined',
  ]);
});

/** Kinds of events that may truthfully come twice in a row. */
const MAY_REPEAT: readonly LockEvent['type'][] = ['fencingRejected', 'broken'];

it(`refuses every history with an event doubled (seed ${seed})`, () => {
  fc.assert(
    fc.property(steps, fc.nat(), (script, chosen) => {
      const history = new RandomHistory(script);
      const entries = history.group.history;
      const all = entries.flatMap(({ events }) => events).filter(({ type }) => !MAY_REPEAT.includes(type));
      const doubled = all[chosen % all.length];
      const changed = entries.map((entry) => ({
        ...entry,
        events: entry.events.flatMap((event) => (event === doubled ? [event, event] : [event])),
      }));
      expect(check(history, changed).ok, JSON.stringify(doubled)).toBe(false);
    }),
    parameters,
  );
});

/** Kinds of events without which what follows cannot be true, once all sessions have ended. */
const NEEDED: readonly LockEvent['type'][] = [
  'granted',
  'queued',
  'released',
  'expired',
  'revoked',
  'sessionOpened',
  'sessionEnding',
  'tookOver',
];

it(`refuses every history with an event left out (seed ${seed})`, () => {
  fc.assert(
    fc.property(steps, fc.nat(), (script, chosen) => {
      const history = new RandomHistory(script);
      const entries = history.group.history;
      const all = entries.flatMap(({ events }) => events).filter(({ type }) => NEEDED.includes(type));
      const missing = all[chosen % all.length];
      const changed = entries.map((entry) => ({
        ...entry,
        events: entry.events.filter((event) => event !== missing),
      }));
      expect(check(history, changed).ok, JSON.stringify(missing)).toBe(false);
    }),
    parameters,
  );
});

it('accepts the end of a session that takes several entries, with waiters and lock-delays', () => {
  const group = modelGroup({ config: { lockDelayMs: 1_000 } });
  for (let i = 0; i < 2_500; i++) {
    group.now(acquire(1, `hold ${i}`, `name ${i}`, { acks: [`hold ${i - 1}`] }));
    if (i % 10 === 0) group.now(acquire(2, `wait ${i}`, `name ${i}`));
  }
  group.apply(15_000, expire(1));
  for (let i = 0; i < 8; i++) group.apply(250);
  const configs = new Map([[1, namespaceConfig({ lockDelayMs: 1_000 })]]);
  const checker = new HistoryChecker({ configs });
  for (const entry of group.history) checker.entry(entry);
  const verdict = checker.finish();
  expect(verdict.violations).toEqual([]);
  expect(verdict.counts).toMatchObject({ grants: 2_750, queued: 250 });
});
