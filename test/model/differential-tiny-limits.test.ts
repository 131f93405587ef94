/**
 * The state machine against the naive model, with limits so small that every run meets them all the time: an entry that may
 * carry out three consequences shows each way of being interrupted, which 2,000 show once in a blue moon.
 */
import { expect, it, vi } from 'vitest';
import { TRANSITIONS_PER_ENTRY_MAX } from '../../src/api/limits.ts';
import { differentialTest } from './suite.ts';

vi.mock('../../src/api/limits.ts', async (original) => ({
  ...(await original<typeof import('../../src/api/limits.ts')>()),
  TRANSITIONS_PER_ENTRY_MAX: 3,
  UNSETTLED_OUTCOMES_MAX: 5,
  KEYS_PER_GRANT_MAX: 3,
}));

const COMMANDS = 800_000;

it(
  'rules C1, C2, C5, C6, C10: core and naive model agree where budget and outcomes are always short',
  () => {
    expect(TRANSITIONS_PER_ENTRY_MAX).toBe(3);
    const { commands, runs, missed } = differentialTest({
      commands: COMMANDS,
      file: 'test/model/differential-tiny-limits.test.ts',
      checked: false,
      largeOneIn: Number.POSITIVE_INFINITY,
    });
    expect(runs).toBeGreaterThan(0);
    expect(commands).toBeGreaterThan(0);
    expect(missed).toEqual([]);
  },
  20 * 60_000,
);
