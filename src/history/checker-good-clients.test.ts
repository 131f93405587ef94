/** Histories with client records that keep every promise: the checker must accept them. */
import { expect, it } from 'vitest';
import {
  begun,
  cancelled,
  configured,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  History,
  opened,
  queued,
  refused,
  released,
  tookOver,
  under,
} from './history.fixture.ts';
import { expectAccepted } from './verdicts.fixture.ts';

const rest = { quiet: true, clientsGone: true };

it('accepts a declared new lineage, which ends all sessions and goes on with higher tokens', () => {
  const history = begun().entry(granted(1_001, 1), queued('q2', 2, 1));
  history.client({ type: 'clientStopped', session: 1, at: 0 });
  history.run({ type: 'newLineage', lineage: 'lineage-2' });
  Object.assign(history, { lineage: 'lineage-2', epoch: 1, index: 0, at: 0 });
  history
    .entry(tookOver(1, 2 ** 46), configured(1), opened(1))
    .entry(granted(2 ** 46 + 1, 1))
    .entry(released(2 ** 46 + 1, 1))
    .entry(ending(1, 'closed'), ended(1))
    .pass(60_000)
    .entry();
  expectAccepted(history.check(under({}), rest));
});

it('accepts client records that fit, given before or after what they speak of', () => {
  const at = { session: 1, name: 'a', token: 1_001 };
  const records = [
    { type: 'keepaliveAcknowledged', session: 1, sentAt: 3_000, ttlMs: 15_000 },
    { type: 'grantReported', ...at, key: 'key-1001', at: 20 },
    { type: 'heldInterval', ...at, from: 20, to: 15_000 },
    { type: 'lost', ...at, at: 15_000 },
    { type: 'clientStopped', session: 1, at: 16_000 },
  ] as const;
  const write = (history: History): History =>
    history
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(18_000)
      .entry(ending(1), expired(1_001, 1), ended(1), grantedFromQueue(1_002, 2, 'q2', 18_000))
      .pass(30_000);
  expectAccepted(
    write(begun())
      .client(...records)
      .check(under({})),
  );
  const early = new History().client(...records);
  early.entry(tookOver(1, 1_000), configured(1), opened(1), opened(2));
  expectAccepted(write(early).check(under({})));
});

it('accepts a loss that nobody could be told of: stopped clients, and grants given up', () => {
  const at = { session: 1, name: 'a', token: 1_001 };
  const write = (): History =>
    begun()
      .entry(granted(1_001, 1))
      .client({ type: 'grantReported', ...at, key: 'key-1001', at: 10 })
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), ended(1))
      .pass(40_000);
  expectAccepted(write().client({ type: 'clientStopped', session: 1, at: 100 }).check());
  expectAccepted(
    write()
      .client({ type: 'gaveUp', ...at, at: 14_000 })
      .check(),
  );
  expectAccepted(
    write()
      .client({ type: 'clientStopped', session: 1, at: 100 })
      .client({ type: 'clientResumed', session: 1, at: 30_000 })
      .client({ type: 'lost', ...at, at: 30_005 })
      .check(),
  );
});

it('accepts a loss told within the bound after a short stop', () => {
  const at = { session: 1, name: 'a', token: 1_001 };
  expectAccepted(
    begun()
      .entry(granted(1_001, 1))
      .client({ type: 'grantReported', ...at, key: 'key-1001', at: 10 })
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), ended(1))
      .client({ type: 'clientStopped', session: 1, at: 16_000 })
      .client({ type: 'clientResumed', session: 1, at: 16_500 })
      .pass(20_000)
      .entry()
      .client({ type: 'lost', ...at, at: 32_000 })
      .check(),
  );
});

it('accepts a keepalive acknowledged before its session was closed', () => {
  const history = begun().pass(1_000).entry(ending(1, 'closed'), ended(1));
  history.client({ type: 'keepaliveAcknowledged', session: 1, sentAt: 900, ttlMs: 15_000 });
  expectAccepted(history.check());
});

it('accepts late ends after a time without commits, and for declared pauses and leader changes', () => {
  const still = begun().entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }));
  still.standStill(40_000).entry(refused('q2', 2), ending(1), expired(1_001, 1), ended(1));
  expectAccepted(still.check());

  const paused = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 0 });
  paused.run({ type: 'pause', from: 2_000, to: 6_000, extraMs: 5_000, reason: 'stall' });
  paused.pass(24_900).entry(ending(1), expired(1_001, 1), ended(1));
  expectAccepted(paused.check());

  const changed = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 0 });
  changed.pass(10_000).epoch = 2;
  changed.entry(tookOver(2, 5_000)).pass(36_000).entry(ending(1), expired(1_001, 1), ended(1));
  expectAccepted(changed.check());
});

it('accuses nobody of a lateness among pauses that it has forgotten', () => {
  const history = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 0 });
  history.run({ type: 'pause', from: 0, to: 6_000, extraMs: 0, reason: 'stall' });
  history.pass(20_900).entry(ending(1), expired(1_001, 1), ended(1));
  for (let from = 30_000; from < 30_000 + 2 * 100_001; from += 2) {
    history.run({ type: 'pause', from, to: from + 1, extraMs: 0, reason: 'stall' });
  }
  expectAccepted(history.check());
});

it('accepts a dead holder whose last keepalives came after the stop was noted, in any order', () => {
  const history = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 1_000 });
  for (const sentAt of [2_000, 4_000, 3_000]) {
    history.client({ type: 'keepaliveAcknowledged', session: 1, sentAt, ttlMs: 15_000 });
  }
  expectAccepted(history.pass(19_900).entry(ending(1), expired(1_001, 1), ended(1)).check());
});

it('accepts what happens at the last permitted moment', () => {
  const at = { session: 1, name: 'a', token: 1_001 };
  const expiry = (ttlMs: number, lateMs: number): History =>
    begun()
      .entry(granted(1_001, 1))
      .client({ type: 'grantReported', ...at, key: 'key-1001', at: 0 })
      .client({ type: 'clientStopped', session: 1, at: 0 })
      .pass(ttlMs + lateMs)
      .entry(ending(1), expired(1_001, 1), ended(1));
  expectAccepted(expiry(15_000, 0).check());
  expectAccepted(expiry(15_000, 1_000).check());
  expectAccepted(begun().pass(15_000).entry(ending(1)).pass(1_000).entry(ended(1)).check());
  expectAccepted(
    begun()
      .client({ type: 'keepaliveAcknowledged', session: 1, sentAt: 5_000, ttlMs: 15_000 })
      .pass(20_000)
      .entry(ending(1), ended(1))
      .check(),
  );
  const told = begun()
    .entry(granted(1_001, 1))
    .client({ type: 'heldInterval', ...at, from: 0, to: 15_000 });
  told.pass(15_000).entry(ending(1), expired(1_001, 1), ended(1), granted(1_002, 2));
  expectAccepted(told.client({ type: 'lost', ...at, at: 31_000 }).check());
  const wait = begun().entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }));
  expectAccepted(wait.pass(6_000).entry(refused('q2', 2)).check());
  const cancel = begun()
    .entry(granted(1_001, 1))
    .entry(cancelled('key-1001', 1, 1_001));
  expectAccepted(cancel.client({ type: 'cancelConfirmed', session: 1, key: 'key-1001', at: 0 }).check());
});

it('accepts a `lost` for a token that was never granted: it claims nothing', () => {
  const history = begun().entry(granted(1_005, 1));
  expectAccepted(history.client({ type: 'lost', session: 1, name: 'a', token: 1_003, at: 0 }).check());
});

it('accepts a confirmed release, a confirmed cancel, and a cancel of a key that never came', () => {
  expectAccepted(
    begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(100)
      .entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 100))
      .client({ type: 'releaseConfirmed', session: 1, name: 'a', token: 1_001, at: 110 })
      .entry(cancelled('q2', 2, 1_002))
      .client({ type: 'cancelConfirmed', session: 2, key: 'q2', at: 120 })
      .client({ type: 'cancelConfirmed', session: 3, key: 'never', at: 120 })
      .check(),
  );
});

it('keeps its memory bounded: names that are free, old requests and old sessions are forgotten', () => {
  const history = begun();
  for (let token = 1_001; token < 3_000; token++) {
    history.entry(granted(token, 1, `name-${token}`), released(token, 1, `name-${token}`));
  }
  history.client({
    type: 'grantReported',
    session: 1,
    key: 'key-1001',
    name: 'name-1001',
    token: 1_001,
    at: 5,
  });
  const verdict = history.check({ rememberedRequests: 100 });
  expectAccepted(verdict);
  expect(verdict.counts).toMatchObject({ unjudgedRecords: 1, clientRecords: 1, grants: 1_999 });
});
