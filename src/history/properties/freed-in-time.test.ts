/** Histories that the property must refuse. */
import {
  begun,
  delayed,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  quarantined,
  queued,
  revoked,
  revoking,
  tookOver,
} from '../history.fixture.ts';
import { last, refuses } from '../verdicts.fixture.ts';

refuses('freed-in-time', {
  'a dead holder whose locks are freed too late': () => {
    const history = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 1_000 });
    history.pass(17_100).entry(ending(1), expired(1_001, 1), ended(1));
    return { history, tokens: [], indexes: [last(history)] };
  },
  'a dead holder freed a millisecond late': () => {
    const history = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 0 });
    history.pass(16_001).entry(ending(1), expired(1_001, 1), ended(1));
    return { history, tokens: [], indexes: [last(history)] };
  },
  'a dead holder who is never expired': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'clientStopped', session: 1, at: 0 })
      .pass(60_000)
      .entry(),
    tokens: [1_001],
    indexes: [2],
  }),
  'a dead holder freed later than a pause and a leader change allow': () => {
    const history = begun().entry(granted(1_001, 1)).client({ type: 'clientStopped', session: 1, at: 0 });
    history.run({ type: 'pause', from: 0, to: 2_000, extraMs: 0, reason: 'stall' });
    history.pass(10_000).epoch = 2;
    history.entry(tookOver(2, 5_000)).pass(38_200).entry(ending(1), expired(1_001, 1), ended(1));
    return { history, tokens: [], indexes: [last(history)] };
  },
  'an ending session that is not emptied': () => ({
    history: begun().entry(granted(1_001, 1)).pass(15_000).entry(ending(1)).pass(5_000).entry(),
    tokens: [],
    indexes: [62],
  }),
  'an ending session that is emptied too late': () => {
    const history = begun().pass(15_000).entry(ending(1)).pass(1_300).entry(ended(1));
    return { history, tokens: [], indexes: [61, last(history)] };
  },
  'a revoke that runs on': () => {
    const history = begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .pass(16_500);
    return { history: history.entry(revoked(1_001, 1)), tokens: [1_001], indexes: [3, last(history)] };
  },
  'a revoke that runs on after the quarantine': () => {
    const history = begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000), quarantined)
      .pass(30_000);
    history.entry({ type: 'unquarantined', name: 'a', by: 'operator' }).pass(1_500);
    return { history: history.entry(revoked(1_001, 1)), tokens: [1_001], indexes: [3, last(history)] };
  },
  'a waiter who is granted long after the lock-delay': () => {
    const history = begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(15_000);
    history.entry(ending(1), expired(1_001, 1), delayed(16_000), ended(1)).pass(2_600);
    history.entry(grantedFromQueue(1_002, 2, 'q2', 17_600));
    return { history, tokens: [1_002], indexes: [62, last(history)] };
  },
});
