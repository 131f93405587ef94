/** Routes of sessions to client streams, both ways. */
import { expect, test } from 'vitest';
import { Outgoing } from './outbox.ts';
import { Routes } from './routes.ts';

const stream = (client = 1): Outgoing => new Outgoing({ send: () => undefined }, client);

test('a session has the route it was given last', () => {
  const routes = new Routes();
  const [first, second] = [stream(1), stream(2)];
  routes.set(7, first, 1);
  routes.set(7, second, 2);
  expect(routes.get(7)).toEqual({ to: second, attach: 2 });
  first.isClosed = true;
  routes.close(first);
  expect(routes.get(7)?.to).toBe(second);
  routes.delete(7);
  routes.delete(7);
  expect(routes.get(7)).toBeUndefined();
  expect(routes.size).toBe(0);
});

test('a stream that closes takes its own routes with it, and later ones are not made', () => {
  const routes = new Routes();
  const [gone, other] = [stream(1), stream(2)];
  for (const session of [1, 2, 3]) routes.set(session, gone, 1);
  routes.set(4, other, 1);
  gone.isClosed = true;
  routes.close(gone);
  routes.set(5, gone, 1);
  routes.set(4, gone, 2);
  expect([1, 2, 3, 4, 5].map((session) => routes.get(session))).toEqual(Array(5).fill(undefined));
  expect(routes.size).toBe(0);
});

test('what a stream costs that closes does not grow with the sessions of others', () => {
  const closings = 2_000;
  const timeWith = (others: number): number => {
    const routes = new Routes();
    for (let session = 0; session < others; session++) routes.set(session, stream(session), 1);
    const startedMs = performance.now();
    for (let at = 0; at < closings; at++) {
      const gone = stream(-at);
      routes.set(others + at, gone, 1);
      gone.isClosed = true;
      routes.close(gone);
    }
    expect(routes.size).toBe(others);
    return performance.now() - startedMs;
  };
  timeWith(100);
  // Looking at each of 100,000 for each that closes takes seconds.
  expect(timeWith(100_000)).toBeLessThan(10 * timeWith(1_000) + 100);
});
