/**
 * The state machine against the naive model, with the real limits. LEASEHOLD_SEED=N repeats one run;
 * LEASEHOLD_MODEL_COMMANDS says how many commands to try in all.
 */
import { expect, it } from 'vitest';
import { differentialTest } from './suite.ts';

const COMMANDS = 700_000;

it(
  'rules C1 to C13, C15, C16: core and naive model agree on random commands',
  () => {
    const { commands, runs, missed } = differentialTest({
      commands: COMMANDS,
      file: 'test/model/differential.test.ts',
      checked: true,
      largeOneIn: 150,
    });
    expect(runs).toBeGreaterThan(0);
    expect(commands).toBeGreaterThan(0);
    expect(missed).toEqual([]);
  },
  20 * 60_000,
);
