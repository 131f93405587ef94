/** Histories that the property must refuse. */
import {
  begun,
  cancelled,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  quarantined,
  queued,
  refused,
  released,
} from '../history.fixture.ts';
import { last, refuses } from '../verdicts.fixture.ts';

refuses('no-ghost-grants', {
  'a grant to a session that ended': () => ({
    history: begun().entry(ending(1, 'closed'), ended(1)).entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a grant to a session that is ending': () => ({
    history: begun()
      .pass(15_000)
      .entry(ending(1))
      .entry(granted(1_001, 1))
      .entry(expired(1_001, 1), ended(1)),
    tokens: [1_001],
    indexes: [61, 62],
  }),
  'a grant to a session that never was': () => ({
    history: begun().entry(granted(1_001, 9)),
    tokens: [1_001],
    indexes: [2],
  }),
  'a wait of an ending session': () => ({
    history: begun()
      .entry(granted(1_001, 2))
      .entry(ending(1, 'closed'), queued('q', 1, 1), refused('q', 1, { code: 'SESSION_EXPIRED' }), ended(1)),
    tokens: [],
    indexes: [3],
  }),
  'a grant to a cancelled wait': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(cancelled('q2', 2))
      .entry(released(1_001, 1), granted(1_002, 2, 'a', { key: 'q2' })),
    tokens: [1_002],
    indexes: [3, 4],
  }),
  'a grant to a key whose grant was cancelled': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(cancelled('key-1001', 1, 1_001))
      .entry(granted(1_002, 1, 'a', { key: 'key-1001' })),
    tokens: [1_002],
    indexes: [3, 4],
  }),
  'a grant to a key that was refused': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(refused('k', 2, { code: 'HELD', fromQueue: false }))
      .entry(released(1_001, 1), granted(1_002, 2, 'a', { key: 'k' })),
    tokens: [1_002],
    indexes: [3, 4],
  }),
  'a grant to a wait that was over': () => {
    const history = begun().entry(granted(1_001, 1), queued('q2', 2, 1, { waitUntil: 5_000 }));
    history.pass(5_000).entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 5_000));
    return { history, tokens: [1_002], indexes: [2, last(history)] };
  },
  'a grant of a quarantined name': () => ({
    history: begun().entry(quarantined).entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [3],
  }),
  'a grant after the cancel of its key was confirmed': () => ({
    history: begun()
      .client({ type: 'cancelConfirmed', session: 1, key: 'key-1001', at: 0 })
      .pass(100)
      .entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [2],
  }),
  'the same, with the confirmation on record only afterwards': () => ({
    history: begun()
      .pass(100)
      .entry(granted(1_001, 1))
      .client({ type: 'cancelConfirmed', session: 1, key: 'key-1001', at: 99 }),
    tokens: [1_001],
    indexes: [2],
  }),
});
