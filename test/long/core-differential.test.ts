/** Eight million random commands through the state machine and the naive model; see test/model. */
import { expect, it } from 'vitest';
import { differentialTest } from '../model/suite.ts';

const COMMANDS = 8_000_000;

it('rules C1, C3 to C5, C7 to C13, C16: core and naive model agree on very many random commands', () => {
  const { commands, runs } = differentialTest({
    commands: COMMANDS,
    file: 'test/model/differential.test.ts',
    checked: true,
    largeOneIn: 100,
  });
  expect(runs).toBeGreaterThan(0);
  expect(commands).toBeGreaterThan(0);
});
