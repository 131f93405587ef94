/**
 * Small scope, without chance: every order of what can happen to two clients, one name, two leaders and one crash, over the shipped core,
 * leader and front end. A slice in every `npm test`; `npm run test:long` goes deeper.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { type Explored, explore } from './exhaustive/explore.ts';
import { SmallWorld } from './exhaustive/small-world.ts';

const isLong = process.env.LEASEHOLD_LONG === '1';
const STEPS = isLong ? 10 : 6;
const LIMIT_MS = isLong ? 3_600_000 : 120_000;

it(
  `no order of ${STEPS} steps breaks a promise`,
  async () => {
    const { states, schedules, isWhole, found } = await explore({ steps: STEPS });
    console.log(`exhaustive, ${STEPS} steps: ${states} states, ${schedules} schedules`);
    expect(found).toBeNull();
    expect(isWhole).toBe(true);
    expect(states).toBeGreaterThan(1_000);
  },
  LIMIT_MS,
);

it('each step that is offered at first does what it says, and is done then', async () => {
  const steps = (await SmallWorld.start()).enabled();
  expect(steps).toContain('the TTL passes');
  for (const step of steps) {
    const world = await SmallWorld.start();
    await world.take(step);
    expect(world.enabled()).not.toContain(step);
  }
});

it('a slice can be asked for, and says that it is none of the whole', async () => {
  const { schedules, isWhole, found } = await explore({ steps: 12, schedules: 20 });
  expect(found).toBeNull();
  expect({ schedules, isWhole }).toEqual({ schedules: 20, isWhole: false });
});

it('a bug in the fence of the log is found, with the steps that show it', async () => {
  const script = fileURLToPath(new URL('./exhaustive/try.ts', import.meta.url));
  const args = [script, 'a deposed leader can still append', '6'];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { found } = JSON.parse(stdout) as Explored;
  expect(found?.message).toContain('the append of epoch 1 got through while 2 led');
  expect(found?.steps).toContain('two takes over');
}, 120_000);
