/** What is remembered of acquires under way, and that it is forgotten. */
import { expect, test } from 'vitest';
import type { Loss } from './errors.ts';
import { Requests } from './requests.ts';

const LOST: Loss = { cause: 'lost', reason: 'gone' };

test('the end of a grant is kept only while somebody may still hear of the grant', () => {
  const requests = new Requests();
  requests.ended(7, LOST);
  requests.asks('a');
  expect(requests.answered('a', 7)).toBeUndefined();
  requests.asks('a');
  requests.asks('b');
  requests.ended(7, LOST);
  expect(requests.answered('a', 8)).toBeUndefined();
  expect(requests.answered('b', 7)).toBe(LOST);
  requests.asks('c');
  expect(requests.answered('c', 7)).toBeUndefined();
});

test('a grant for an abandoned request is given back once; of very many the oldest is forgotten', () => {
  const requests = new Requests();
  for (let index = 0; index <= 1_000; index++) {
    requests.asks(`r${index}`);
    expect(requests.abandon(`r${index}`, 'jobs/a')).toBeNull();
  }
  expect(requests.granted('r0', 1)).toBeNull();
  expect(requests.granted('r1', 2)).toEqual({ name: 'jobs/a', token: 2, request: 'r1' });
  expect(requests.granted('r1', 2)).toBeNull();
  requests.asks('told');
  expect(requests.granted('told', 3)).toBeNull();
  expect(requests.abandon('told', 'jobs/b')).toEqual({ name: 'jobs/b', token: 3, request: 'told' });
  expect(requests.granted('told', 3)).toBeNull();
});
