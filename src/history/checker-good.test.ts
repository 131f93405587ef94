/** Histories that keep every promise: the checker must accept them. */
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
  grantedFromQueue,
  History,
  opened,
  quarantined,
  queued,
  refused,
  released,
  revoked,
  revoking,
  tookOver,
  under,
} from './history.fixture.ts';
import { expectAccepted } from './verdicts.fixture.ts';

const rest = { quiet: true, clientsGone: true };

it('accepts hold and release, one after the other', () => {
  const history = begun();
  for (let token = 1_001; token < 1_010; token++) {
    history.entry(granted(token, 1 + (token % 4))).pass(100);
    history.entry(released(token, 1 + (token % 4)));
  }
  const verdict = history.check(under({}), { quiet: true });
  expectAccepted(verdict);
  expect(verdict.counts).toMatchObject({ grants: 9, sessions: 4, takeOvers: 1, entries: 19, violations: 0 });
});

it('accepts a queue that is served in order, with one that leaves from the middle', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1), queued('q3', 3, 2), queued('q4', 4, 3))
      .pass(500)
      .entry(cancelled('q3', 3))
      .entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 500))
      .pass(100)
      .entry(released(1_002, 2), grantedFromQueue(1_003, 4, 'q4', 600))
      .entry(released(1_003, 4))
      .check(under({}), { quiet: true }),
  );
});

it('accepts an expiry with lock-delay, and the grant right at its end', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), delayed(20_000), ended(1))
      .pass(5_000)
      .entry(grantedFromQueue(1_002, 2, 'q2', 20_000))
      .check(under({ lockDelayMs: 5_000 })),
  );
});

it('accepts a clean close of everything', () => {
  expectAccepted(
    new History()
      .entry(tookOver(1, 1_000), configured(1), opened(1), opened(2))
      .entry(granted(1_001, 1), granted(1_002, 1, 'b'), queued('q2', 2, 1))
      .pass(100)
      .entry(
        ending(1, 'closed'),
        released(1_001, 1, 'a', { cause: 'close' }),
        grantedFromQueue(1_003, 2, 'q2', 100),
        released(1_002, 1, 'b', { cause: 'close' }),
        ended(1),
      )
      .entry(ending(2, 'closed'), released(1_003, 2, 'a', { cause: 'close' }), ended(2))
      .check(under({ lockDelayMs: 5_000 }), rest),
  );
});

it('accepts a revoke that runs out, one that is given up, and a break at once', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1))
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .pass(15_000)
      .entry(revoked(1_001, 1), delayed(16_000))
      .pass(1_000)
      .entry(granted(1_002, 2))
      .entry(broken(1_002, 2, false), revoking(1_002, 2, 31_000))
      .pass(2_000)
      .entry(released(1_002, 2), delayed(19_000))
      .pass(1_000)
      .entry(granted(1_003, 3), queued('q4', 4, 1))
      .pass(100)
      .entry(broken(1_003, 3, true), revoked(1_003, 3, true), grantedFromQueue(1_004, 4, 'q4', 100))
      .check(under({ lockDelayMs: 1_000 })),
  );
});

it('accepts wait limits, refusals and quarantine', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }), queued('q3', 3, 2))
      .entry(refused('h4', 4, { code: 'HELD', fromQueue: false }))
      .pass(5_000)
      .entry(refused('q2', 2))
      .entry(quarantined, refused('q3', 3, { code: 'QUARANTINED' }))
      .entry(released(1_001, 1))
      .entry(refused('r4', 4, { code: 'QUARANTINED', fromQueue: false }))
      .entry({ type: 'unquarantined', name: 'a', by: 'operator' })
      .entry(granted(1_002, 4))
      .check(under({}), { quiet: true }),
  );
});

it('accepts that timers of a hold stand still while its name is quarantined, and that it then leaves no lock-delay', () => {
  const unquarantined = { type: 'unquarantined', name: 'a', by: 'operator' } as const;
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(quarantined)
      .pass(40_000)
      .entry(unquarantined)
      .entry(revoked(1_001, 1), delayed(45_000))
      .pass(5_000)
      .entry(granted(1_002, 2))
      .entry(quarantined)
      .entry(ending(2), expired(1_002, 2), ended(2))
      .entry(unquarantined)
      .entry(granted(1_003, 3))
      .entry({ type: 'fencingRejected', session: 0, name: 'a', token: 1_001, resource: 'db' })
      .check(under({ lockDelayMs: 5_000 })),
  );
});

it('accepts leader changes that keep sessions, holds and rising tokens', () => {
  const history = begun().entry(granted(1_001, 1), queued('q2', 2, 1));
  history.standStill(3_000).epoch = 2;
  history
    .entry(tookOver(2, 5_000))
    .pass(200)
    .entry(released(1_001, 1), grantedFromQueue(5_001, 2, 'q2', 3_200));
  history.run({ type: 'epochLed', lineage: history.lineage, epoch: 2, server: 'two' });
  history.run({ type: 'epochLed', lineage: history.lineage, epoch: 2, server: 'two' });
  expectAccepted(history.check(under({})));
});

it('accepts the highest token there is, and a take-over that raises nothing', () => {
  const history = begun().entry(granted(2 ** 53 - 1, 1), released(2 ** 53 - 1, 1));
  history.epoch = 2;
  expectAccepted(history.entry(tookOver(2, 2 ** 53 - 1)).check());
});

it('accepts a lock-delay after a cancel under revoke', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1))
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(cancelled('key-1001', 1, 1_001), delayed(5_000))
      .check(under({ lockDelayMs: 5_000 })),
  );
});

it('accepts any number of anything when the configuration is not known', () => {
  const history = new History().entry(tookOver(1, 1_000), opened(1, 1), opened(2, 1), granted(1_001, 1));
  expectAccepted(history.entry(queued('q2', 2, 1, { waitUntil: 1e9 })).check());
});

it('accepts shared holders beside each other', () => {
  const shared = { mode: 'shared' } as const;
  expectAccepted(
    begun()
      .entry(granted(1_001, 1, 'a', shared), granted(1_002, 2, 'a', shared))
      .check(),
  );
});

it('accepts everything just within the limits', () => {
  const tight = {
    sessions: 6,
    heldLocks: 3,
    waiters: 2,
    maxWaitersPerName: 2,
    locksPerClient: 2,
    maxWaitMs: 60_000,
  };
  expectAccepted(
    begun()
      .entry(opened(5, 5_000), opened(6, 60_000))
      .entry(granted(1_001, 1), granted(1_002, 1, 'b'), granted(1_003, 2, 'c'))
      .entry(queued('q2', 2, 1), queued('q3', 3, 2))
      .entry(released(1_001, 1), grantedFromQueue(1_004, 2, 'q2', 0))
      .check(under(tight)),
  );
});
