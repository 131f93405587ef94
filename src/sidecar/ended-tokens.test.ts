/** The last grants that are over: for `already`, and for the metric of work after the lease. */
import { expect, test } from 'vitest';
import { EndedTokens, endedGrant } from './ended-tokens.ts';

const REMEMBERED_MAX = 10_240;

test('a release is known again by name, token and session together', () => {
  const ended = new EndedTokens();
  ended.add({
    name: 'a',
    token: 5,
    key: 'k',
    shareOf: null,
    envelope: 's',
    how: 'released',
    wasWholeSession: false,
  });
  expect(ended.find({ name: 'a', token: 5, envelope: 's', request: undefined })?.how).toBe('released');
  expect(ended.find({ name: 'b', token: 5, envelope: 's', request: undefined })).toBeUndefined();
  expect(ended.find({ name: 'a', token: 6, envelope: 's', request: undefined })).toBeUndefined();
  expect(ended.find({ name: 'a', token: 5, envelope: 't', request: undefined })).toBeUndefined();
  expect(ended.countOnce(5)).toBe(false);
});

test('a lost grant counts once, and was not released', () => {
  const ended = new EndedTokens();
  ended.add({
    name: 'a',
    token: 5,
    key: 'k',
    shareOf: null,
    envelope: 's',
    how: 'lost',
    wasWholeSession: false,
  });
  expect(ended.find({ name: 'a', token: 5, envelope: 's', request: undefined })?.how).toBe('lost');
  expect([ended.countOnce(5), ended.countOnce(5), ended.countOnce(6)]).toEqual([true, false, false]);
});

test('shares of a re-entrant grant are given back one by one, and lost together', () => {
  const ended = new EndedTokens();
  const end = (request: string, how: 'released' | 'lost') =>
    ended.add(
      endedGrant(
        { name: 'a', token: 5, key: `k-${request}`, envelope: 's', how, reentrant: true, request },
        false,
      ),
    );
  const find = (request: string | undefined) => ended.find({ name: 'a', token: 5, envelope: 's', request });
  end('r1', 'released');
  expect(find('r1')).toMatchObject({ how: 'released', key: 'k-r1' });
  expect([find('r2'), find(undefined)]).toEqual([undefined, undefined]);
  expect(ended.countOnce(5)).toBe(false);
  end('r2', 'lost');
  end('r3', 'lost');
  expect([find('r1')?.how, find('r2')?.how, find(undefined)?.how]).toEqual(['released', 'lost', 'lost']);
  expect([ended.countOnce(5), ended.countOnce(5)]).toEqual([true, false]);
});

test('a request says nothing about a grant that is not re-entrant', () => {
  const ended = new EndedTokens();
  const given = { name: 'a', token: 5, key: 'k', envelope: 's', how: 'released', request: 'r' } as const;
  ended.add(endedGrant({ ...given, reentrant: false }, false));
  for (const request of ['r', 'other', undefined])
    expect(ended.find({ name: 'a', token: 5, envelope: 's', request })?.how).toBe('released');
});

test('the oldest are forgotten first, whole, and nothing grows', () => {
  const ended = new EndedTokens();
  for (let token = 1; token <= 3 * REMEMBERED_MAX; token++) {
    ended.add({
      name: 'a',
      token,
      key: 'k',
      shareOf: null,
      envelope: 's',
      how: 'lost',
      wasWholeSession: false,
    });
    if (token % 2 === 0) ended.countOnce(token);
  }
  const oldest = 2 * REMEMBERED_MAX + 1;
  expect(ended.countOnce(oldest - 2)).toBe(false);
  expect(ended.countOnce(oldest)).toBe(true);
  ended.add({
    name: 'a',
    token: 1,
    key: 'k',
    shareOf: null,
    envelope: 's',
    how: 'lost',
    wasWholeSession: false,
  });
  expect(ended.countOnce(1)).toBe(true);
});
