import { expect, test } from 'vitest';
import { LeaseholdError } from '../../api/errors.ts';
import { refusalText } from './held.ts';

test.each([
  [{ field: 'wait_ms', limit: 14_400_000 }, 'no (wait_ms, from --wait; limit: 4h)'],
  [{ field: 'ttl_s', limit: 60 }, 'no (ttl_s, from --ttl; limit: 60s)'],
  [{ field: 'ttl_s', limit: 8.001 }, 'no (ttl_s, from --ttl; limit: 8s1ms)'],
  [{ field: 'permits', limit: 3 }, 'no (permits, from --permits; limit: 3)'],
  [{ field: 'mode' }, 'no (mode, from --shared, --permits or neither)'],
  [{ field: 'name', limit: '<alias>/<rest>' }, 'no (name; limit: <alias>/<rest>)'],
  [{}, 'no'],
])('INVALID names the field, its flag and the limit: %j', (details, text) => {
  expect(refusalText(new LeaseholdError('INVALID', 'no', details))).toBe(text);
});

test('a holder without a name is unnamed', () => {
  const holder = { owner: '', purpose: 'pay', held_for_ms: 2_100, token: 7 };
  expect(refusalText(new LeaseholdError('HELD', 'the lock is held', { holder }))).toBe(
    'the lock is held: by (unnamed) (pay) for 2 s under token 7',
  );
  expect(refusalText(new LeaseholdError('HELD', 'the lock is held', { holder: null }))).toBe(
    'the lock is held',
  );
});
