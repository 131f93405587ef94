/**
 * A snapshot taken at any moment of any run, and read back, goes on exactly as the state it was taken from. The limits are tiny, so
 * that many of those moments lie in the middle of a backlog or between timers. LEASEHOLD_SEED=N repeats one run.
 */
import { expect, it, vi } from 'vitest';
import { TRANSITIONS_PER_ENTRY_MAX } from '../../src/api/limits.ts';
import { apply, createState, type Draft, hasBacklog } from '../../src/core/index.ts';
import { SnapshotReader, writeSnapshot } from '../../src/core/snapshot.ts';
import type { State } from '../../src/core/state.ts';
import { LINEAGE, traceOf } from '../support/core.ts';
import { Random } from '../support/random.ts';
import { Generator, type PlannedEntry } from './generator.ts';

vi.mock('../../src/api/limits.ts', async (original) => ({
  ...(await original<typeof import('../../src/api/limits.ts')>()),
  TRANSITIONS_PER_ENTRY_MAX: 3,
  UNSETTLED_OUTCOMES_MAX: 5,
  KEYS_PER_GRANT_MAX: 3,
}));

const RUNS = 300;
const ENTRIES = 120;
const SEEDS = 2 ** 40;
const TIMEOUT_MS = 180_000;

function draftAfter(state: State, { afterMs, commands }: PlannedEntry): Draft {
  const { epoch, index, at, lineage } = state;
  const [first] = commands;
  return {
    format: 1,
    behaviour: state.behaviour,
    lineage,
    epoch: first?.type === 'takeOver' ? first.epoch : epoch,
    index: index + 1,
    at: at + afterMs,
    commands,
  };
}

interface Seen {
  /** Whether the snapshot was taken with something left to do, and while a revoke, a delay, a quarantine was on. */
  busy: number;
  revoking: number;
  delayed: number;
  quarantined: number;
}

function run(seed: number, seen: Seen): void {
  const random = new Random(seed);
  const generator = new Generator(random, { isLarge: false, oneRequestPerKey: false });
  const state = createState(LINEAGE);
  apply(state, draftAfter(state, generator.first()));
  const moment = random.int(ENTRIES);
  for (let i = 0; i < moment; i++) apply(state, draftAfter(state, generator.next(state)));
  const reader = new SnapshotReader();
  for (const line of writeSnapshot(state)) reader.line(line);
  const copy = reader.finish();
  note(state, seen);
  for (let i = 0; i < ENTRIES; i++) {
    const draft = draftAfter(state, generator.next(state));
    expect(apply(copy, draft)).toEqual(apply(state, draft));
    expect(copy.eventHash).toBe(state.eventHash);
  }
  expect(traceOf(copy).toSorted()).toEqual(traceOf(state).toSorted());
}

function note(state: State, seen: Seen): void {
  if (hasBacklog(state)) seen.busy++;
  if (state.revoking > 0) seen.revoking++;
  const locks = [...state.locks.values()];
  if (locks.some(({ delay }) => delay !== null)) seen.delayed++;
  if (locks.some(({ quarantined }) => quarantined)) seen.quarantined++;
}

it('rule L3: a state read back from a snapshot behaves exactly like the one written', {
  timeout: TIMEOUT_MS,
}, () => {
  const given = process.env.LEASEHOLD_SEED;
  const first = given === undefined ? Math.floor(Math.random() * SEEDS) : Number(given);
  const seen: Seen = { busy: 0, revoking: 0, delayed: 0, quarantined: 0 };
  expect(TRANSITIONS_PER_ENTRY_MAX).toBe(3);
  for (let i = 0; i < (given === undefined ? RUNS : 1); i++) {
    try {
      run(first + i, seen);
    } catch (error) {
      const repeat = `LEASEHOLD_SEED=${first + i} npm test -- test/model/snapshot.test.ts`;
      throw new Error(`to repeat: ${repeat}`, { cause: error });
    }
  }
  // The moments were worth it.
  if (given === undefined) for (const times of Object.values(seen)) expect(times).toBeGreaterThan(RUNS / 50);
});
