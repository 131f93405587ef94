/** When a standby may end a leadership: both signs, and not too often (rule S7). */
import { expect, test } from 'vitest';
import { Suspicion } from './suspicion.ts';

const SETTINGS = { silenceMs: 400, everyMs: 30_000 };
const dead = { isUnheard: true, silentMs: 400, epochAgeMs: 60_000 };

test('it takes both signs, of a leader that has had its time to begin', () => {
  const suspicion = new Suspicion(SETTINGS);
  expect(suspicion.isDue(dead, 0)).toBe(true);
  expect(suspicion.isDue({ ...dead, isUnheard: false }, 0)).toBe(false);
  expect(suspicion.isDue({ ...dead, silentMs: 399 }, 0)).toBe(false);
  expect(suspicion.isDue({ ...dead, epochAgeMs: 999 }, 0)).toBe(false);
});

test('one in 30 s, doubling when they follow each other, and as at first after a calm time', () => {
  const suspicion = new Suspicion(SETTINGS);
  const due: number[] = [];
  for (let second = 0; second < 400; second++) {
    if (!suspicion.isDue(dead, second * 1_000)) continue;
    suspicion.happened(second * 1_000);
    due.push(second);
  }
  expect(due).toEqual([0, 30, 90, 210]);
  const calm = 210 + 2 * 240;
  expect(suspicion.isDue(dead, calm * 1_000)).toBe(true);
  suspicion.happened(calm * 1_000);
  expect(suspicion.isDue(dead, (calm + 29) * 1_000)).toBe(false);
  expect(suspicion.isDue(dead, (calm + 30) * 1_000)).toBe(true);
});

test('those of other replicas count, and the same one, heard of twice, counts once', () => {
  const suspicion = new Suspicion(SETTINGS);
  suspicion.happened(0);
  suspicion.happened(300);
  expect(suspicion.isDue(dead, 29_999)).toBe(false);
  expect(suspicion.isDue(dead, 30_000)).toBe(true);
});
