/** Histories that the property must refuse. */
import {
  begun,
  ended,
  ending,
  expired,
  granted,
  queued,
  refused,
  revoked,
  revoking,
  tookOver,
} from '../history.fixture.ts';
import { last, refuses } from '../verdicts.fixture.ts';

refuses('no-early-expiry', {
  'an expiry before the last acknowledged keepalive and TTL': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'keepaliveAcknowledged', session: 1, sentAt: 10_000, ttlMs: 15_000 })
      .pass(24_999)
      .entry(ending(1), expired(1_001, 1), ended(1)),
    tokens: [1_001],
    indexes: [1, 102],
  }),
  'the same, with the keepalive on record only afterwards': () => {
    const history = begun().pass(20_000).entry(ending(1), ended(1));
    history.client({ type: 'keepaliveAcknowledged', session: 1, sentAt: 5_001, ttlMs: 15_000 });
    return { history, tokens: [], indexes: [1, last(history)] };
  },
  'an expiry within the offset of group time': () => {
    const history = begun().client({
      type: 'keepaliveAcknowledged',
      session: 1,
      sentAt: 1_006_000,
      ttlMs: 15_000,
    });
    history.pass(20_000).entry(ending(1), ended(1));
    return { history, tokens: [], indexes: [1, last(history)], options: { groupTimeOffsetMs: 1_000_000 } };
  },
  'an expiry less than one TTL after the session was opened': () => {
    const history = begun().pass(14_999).entry(ending(1), ended(1));
    return { history, tokens: [], indexes: [1, last(history)] };
  },
  'an expiry less than one TTL after a take-over (rule S5)': () => {
    const history = begun().pass(10_000);
    history.epoch = 2;
    history.entry(tookOver(2, 2_000)).pass(10_000).entry(ending(1), ended(1));
    return { history, tokens: [], indexes: [41, last(history)] };
  },
  'a revoke that ends before its time': () => {
    const history = begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .pass(14_000);
    return { history: history.entry(revoked(1_001, 1)), tokens: [1_001], indexes: [3, last(history)] };
  },
  'a wait that times out before its limit': () => {
    const history = begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(59_000)
      .entry(refused('q2', 2));
    return { history, tokens: [], indexes: [2, last(history)] };
  },
});
