/** Histories of shared, semaphore and re-entrant locks that keep every promise: the checker must accept them. */
import { expect, it } from 'vitest';
import {
  begun,
  broken,
  cancelled,
  configured,
  delayed,
  ended,
  ending,
  expired,
  granted,
  quarantined,
  queued,
  refused,
  released,
  revoked,
  revoking,
} from './history.fixture.ts';
import {
  fromQueue,
  joined,
  pool,
  reader,
  readerWaits,
  taker,
  takerWaits,
  underEach,
} from './modes.fixture.ts';
import { expectAccepted, reported } from './verdicts.fixture.ts';

it('accepts a run of readers, a writer that waits for all of them, and the readers behind it', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), reader(1_002, 2), queued('q3', 3, 1), readerWaits(4, 2))
      .entry(released(1_002, 2))
      .entry(released(1_001, 1), granted(1_003, 3, 'a', fromQueue(0, 3)))
      .entry(readerWaits(1, 2))
      .entry(released(1_003, 3), reader(1_004, 4, fromQueue(0, 4)), reader(1_005, 1, fromQueue(0, 1)))
      .check(underEach({}), { quiet: true }),
  );
});

it('accepts a semaphore up to its permits, and a big request that holds up small ones', () => {
  expectAccepted(
    begun()
      .entry(taker(1_001, 1, 1), taker(1_002, 2, 2), takerWaits(3, 1, 3), takerWaits(4, 2, 1))
      .entry(released(1_001, 1))
      .entry(released(1_002, 2), taker(1_003, 3, 3, fromQueue(0, 3)))
      .entry(released(1_003, 3), taker(1_004, 4, 1, fromQueue(0, 4)))
      .check(underEach(pool(3)), { quiet: true }),
  );
});

it('accepts a cut, its end in time, more permits, and a pattern that goes', () => {
  const cut = (token: number, session: number) =>
    ({ type: 'revoking', name: 'a', session, token, cause: 'permitsCut', until: 15_000 }) as const;
  expectAccepted(
    begun()
      .entry(taker(1_001, 1, 1), taker(1_002, 2, 1), taker(1_003, 3, 1), takerWaits(4, 1, 1))
      .entry(configured(2), cut(1_003, 3), cut(1_002, 2))
      .entry(released(1_002, 2))
      .pass(15_000)
      .entry({ ...cut(1_003, 3), type: 'revoked', unsafe: false, until: undefined } as never)
      .entry(configured(3), taker(1_004, 4, 1, fromQueue(15_000, 4)))
      .entry(configured(4))
      .entry(queued('q2', 2, 1))
      .entry(released(1_001, 1), released(1_004, 4), granted(1_005, 2, 'a', fromQueue(0, 2)))
      .check(underEach(pool(3), pool(1), pool(2), {})),
  );
});

it('accepts any permits when the configuration is not known', () => {
  expectAccepted(
    begun()
      .entry(taker(1_001, 1, 900), taker(1_002, 2, 900), takerWaits(3, 1, 1))
      .check(),
  );
});

it('accepts a lock-delay beside other readers, made longer, and a clean end while it runs', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), reader(1_002, 2), reader(1_003, 3))
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), delayed(20_000), ended(1))
      .entry(readerWaits(4, 1))
      .entry(released(1_003, 3))
      .pass(1_000)
      .entry(ending(2), expired(1_002, 2), delayed(21_000), ended(2))
      .pass(5_000)
      .entry(reader(1_004, 4, fromQueue(6_000, 4)))
      .check(underEach({ lockDelayMs: 5_000 })),
  );
});

it('accepts two unclean ends in one entry with one delay, and a longer one that is enough', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), reader(1_002, 2), reader(1_003, 3))
      .pass(15_000)
      .entry(ending(1), ending(2), expired(1_001, 1), delayed(20_000), expired(1_002, 2), ended(1), ended(2))
      .entry(configured(2), ending(3), expired(1_003, 3), ended(3))
      .check(underEach({ lockDelayMs: 5_000 }, { lockDelayMs: 1_000 })),
  );
});

it('accepts what a timer leaves to the next entry', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1, { waitUntil: 500 }), readerWaits(3, 2), readerWaits(4, 3))
      .pass(500)
      .entry(refused('q2', 2), reader(1_002, 3, fromQueue(500, 3)))
      .entry(reader(1_003, 4, fromQueue(500, 4)))
      .check(underEach({})),
  );
});

it('accepts joins, keys that leave in any order, and the end of them all', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1), joined(1_001, 1, 'k2'), joined(1_001, 1, 'k3'))
      .entry(released(1_001, 1, 'a', { key: 'key-1001', remaining: 2 }))
      .entry(cancelled('k3', 1, 1_001, 1))
      .entry(released(1_001, 1, 'a', { key: 'k2' }), granted(1_002, 2, 'a', fromQueue(0, 2)))
      .entry(
        joined(1_002, 2, 'k4'),
        ending(2, 'closed'),
        released(1_002, 2, 'a', { cause: 'close' }),
        ended(2),
      )
      .check(underEach({ lockDelayMs: 5_000, locksPerClient: 1, heldLocks: 1 })),
  );
});

it('accepts a join from the queue, and one during a lock-delay that does not wait', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), readerWaits(2, 1), queued('again', 2, 2, { mode: 'shared' }))
      .entry(
        released(1_001, 1),
        reader(1_002, 2, fromQueue(0, 2)),
        joined(1_002, 2, 'again', { mode: 'shared', fromQueue: true }),
      )
      .entry(reader(1_003, 3))
      .pass(15_000)
      .entry(ending(3), expired(1_003, 3), delayed(20_000), ended(3))
      .entry(joined(1_002, 2, 'third', { mode: 'shared' }))
      .check(underEach({ lockDelayMs: 5_000 })),
  );
});

it('accepts keys that leave a grant under revoke, with the delay only after the last', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), joined(1_001, 1, 'again'))
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 }))
      .entry(released(1_001, 1, 'a', { key: 'key-1001' }), delayed(5_000))
      .check(underEach({ lockDelayMs: 5_000 })),
  );
});

it('accepts 64 keys of one grant', () => {
  const keys = Array.from({ length: 63 }, (_, i) => joined(1_001, 1, `again-${i}`));
  const verdict = begun()
    .entry(granted(1_001, 1), ...keys)
    .check(underEach({}));
  expectAccepted(verdict);
  expect(verdict.counts.events).toBe(70);
});

it('accepts a session that is parked with a hold on a quarantined name, its client dead', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), quarantined)
      .client({ type: 'clientStopped', session: 1, at: 0 })
      .pass(15_000)
      .entry(ending(1))
      .pass(60_000)
      .entry(
        { type: 'unquarantined', name: 'a', by: 'operator' },
        expired(1_001, 1),
        delayed(80_000),
        ended(1),
      )
      .check(underEach({ lockDelayMs: 5_000 })),
  );
  expectAccepted(
    begun().entry(reader(1_001, 1), quarantined, ending(1, 'closed')).pass(60_000).entry().check(),
  );
});

it('accepts readers that believe side by side, and beliefs in permits that nobody else got', () => {
  const heldInterval = (session: number, token: number, to: number, from = 0) =>
    ({ type: 'heldInterval', session, name: 'a', token, from, to }) as const;
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), reader(1_002, 2), released(1_001, 1))
      .client(heldInterval(1, 1_001, 900), heldInterval(2, 1_002, 900))
      .pass(500)
      .entry(reader(1_003, 3))
      .check(underEach({})),
  );
  expectAccepted(
    begun()
      .entry(taker(1_001, 1, 1), released(1_001, 1))
      .pass(100)
      .entry(taker(1_002, 2, 1))
      .client(heldInterval(1, 1_001, 900), heldInterval(2, 1_002, 900, 100))
      .pass(100)
      .entry(taker(1_003, 3, 1))
      .check(underEach(pool(3))),
  );
});

it('accepts a client told of a join, and of a release of one key, in whatever order', () => {
  const released1 = { type: 'releaseConfirmed', session: 1, name: 'a', token: 1_001, at: 30 } as const;
  const told = [reported, { ...reported, key: 'again', at: 10 }, { ...released1, key: 'again' }] as const;
  const events = (history: ReturnType<typeof begun>) =>
    history
      .entry(granted(1_001, 1), joined(1_001, 1, 'again'))
      .pass(20)
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 }));
  expectAccepted(events(begun().client(...told)).check());
  expectAccepted(
    events(begun())
      .client(...told, released1)
      .check(),
  );
});

it('accepts a revoked reader beside others that go on', () => {
  expectAccepted(
    begun()
      .entry(reader(1_001, 1), reader(1_002, 2))
      .entry(broken(1_001, 1, true), revoked(1_001, 1, true))
      .entry(reader(1_003, 3))
      .check(underEach({ lockDelayMs: 5_000 })),
  );
});
