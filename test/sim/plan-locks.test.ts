/** What seeds choose about locks: allowed by what a namespace may be, and mostly by the configuration at hand. */
import { expect, it } from 'vitest';
import type { NamespaceConfig } from '../../src/api/config.ts';
import { permitsOf } from '../../src/core/policy.ts';
import { Random } from '../support/random.ts';
import { makeConfig } from './plan.ts';
import {
  allowing,
  changeLive,
  chooseLock,
  isPlain,
  type LockHabits,
  makeLocks,
  PLAIN_LOCKS,
} from './plan-locks.ts';

const NAMES = 3;
const MIXED: LockHabits = {
  modes: ['exclusive', 'shared', 'semaphore'],
  reentrant: 0.5,
  takesMore: 0.1,
  asksWrong: 0,
  owners: [undefined],
};

function configFor(locks: LockHabits, random: Random): NamespaceConfig {
  return allowing(makeConfig(random), locks, NAMES, random);
}

it('plain locks stay frequent, and every other mode is asked for by some seed', () => {
  const all = Array.from({ length: 400 }, (_, seed) => makeLocks(new Random(seed)));
  const plain = all.filter(isPlain).length;
  expect(plain).toBeGreaterThan(100);
  expect(plain).toBeLessThan(300);
  expect(new Set(all.flatMap(({ modes }) => modes)).size).toBe(3);
  expect(all.some(({ reentrant }) => reentrant > 0)).toBe(true);
});

it('plain locks draw nothing', () => {
  const [random, untouched] = [new Random(4), new Random(4)];
  const config = makeConfig(new Random(5));
  expect(allowing(config, PLAIN_LOCKS, NAMES, random)).toBe(config);
  expect(chooseLock(PLAIN_LOCKS, config, 'job-0', random)).toMatchObject({ mode: 'exclusive', permits: 1 });
  expect(random.int(1_000_000)).toBe(untouched.int(1_000_000));
});

it('changes leave at least one mode and one permit, and raise, cut, add and remove', () => {
  const random = new Random(6);
  let config = configFor(MIXED, random);
  const kinds = new Set<string>();
  for (let i = 0; i < 2_000; i++) {
    const next = changeLive(config, MIXED, NAMES, random);
    const before = config.semaphores.length;
    if (next.semaphores.length !== before) kinds.add(next.semaphores.length > before ? 'add' : 'remove');
    for (const [place, { pattern, permits }] of next.semaphores.entries()) {
      const known = config.semaphores[place];
      if (known?.pattern === pattern && permits > known.permits) kinds.add('raise');
      if (known?.pattern === pattern && permits < known.permits) kinds.add('cut');
      expect(permits).toBeGreaterThanOrEqual(1);
    }
    expect(next.modes.length).toBeGreaterThanOrEqual(1);
    config = next;
  }
  expect([...kinds].sort()).toEqual(['add', 'cut', 'raise', 'remove']);
});

it('whoever means no harm asks for what the configuration allows', () => {
  const random = new Random(7);
  for (let i = 0; i < 500; i++) {
    const config: NamespaceConfig = { ...configFor(MIXED, random), modes: MIXED.modes };
    const name = `job-${random.int(NAMES)}`;
    const { mode, permits } = chooseLock(MIXED, config, name, random);
    const allowed = permitsOf(config, name);
    expect(mode === 'semaphore').toBe(allowed !== null);
    expect(permits).toBeLessThanOrEqual(allowed ?? 1);
  }
});
