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

const KINDS = [
  'broken',
  'cancelled',
  'configured',
  'delayed',
  'expired',
  'fencingRejected',
  'granted exclusive',
  'granted semaphore',
  'granted shared',
  'joined',
  'left to other keys',
  'quarantined',
  'queued',
  'refused',
  'released',
  'revoked',
  'revoking',
  'revoking permitsCut',
  'sessionEnded',
  'sessionEnding',
  'sessionOpened',
  'tookOver',
  'unquarantined',
];
/** Permits are cut under a holder in one history of 130: now and then in none of 500. */
const ROUNDS_MAX = 10;

it(`accepts every history of the model (seed ${seed})`, () => {
  const seen = new Set<string>();
  const accepts = fc.property(steps, fc.constantFrom('before', 'after', 'beside'), (script, order) => {
    const history = new RandomHistory(script);
    const checker = new HistoryChecker({ configs: history.configs });
    history.feed(checker, order);
    expect(checker.finish({ quiet: true, clientsGone: true }).violations).toEqual([]);
    for (const { events } of history.group.history) {
      for (const event of events) for (const kind of kindsOf(event)) seen.add(kind);
    }
  });
  // A run that never saw some kind of event would prove nothing about it.
  for (let round = 0; round < ROUNDS_MAX && seen.size < KINDS.length; round++)
    fc.assert(accepts, { ...parameters, seed: seed + round });
  expect([...seen].sort()).toEqual(KINDS);
});

function kindsOf(event: LockEvent): string[] {
  const { type } = event;
  if (type === 'granted' && event.joined) return ['joined'];
  if (type === 'granted') return [`granted ${event.mode}`];
  if (type === 'revoking' && event.cause === 'permitsCut') return [type, 'revoking permitsCut'];
  const goesOn = (type === 'released' || type === 'cancelled') && event.remaining > 0;
  return goesOn ? [type, 'left to other keys'] : [type];
}

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

/** A key that came and went beside others leaves no trace if the whole grant ends at once. */
function isNeeded(event: LockEvent): boolean {
  if (event.type === 'granted' && event.joined) return false;
  if (event.type === 'released' && event.remaining > 0) return false;
  return NEEDED.includes(event.type);
}

it(`refuses every history with an event left out (seed ${seed})`, () => {
  fc.assert(
    fc.property(steps, fc.nat(), (script, chosen) => {
      const history = new RandomHistory(script);
      const entries = history.group.history;
      const all = entries.flatMap(({ events }) => events).filter(isNeeded);
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

it(`accepts every history of the model that begins anywhere (seed ${seed})`, () => {
  fc.assert(
    fc.property(steps, fc.nat(), (script, chosen) => {
      const entries = new RandomHistory(script).group.history;
      const checker = new HistoryChecker({ startsInMiddle: true });
      for (const entry of entries.slice(chosen % entries.length)) checker.entry(entry);
      expect(checker.finish().violations).toEqual([]);
    }),
    { ...parameters, numRuns: 4 * RUNS },
  );
});
