/** Histories that the property must refuse. */
import {
  begun,
  configured,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  opened,
  queued,
  refused,
  released,
  revoked,
  revoking,
} from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('bookkeeping', {
  'a release of what nobody holds': () => ({
    history: begun().entry(released(1_001, 1)),
    tokens: [1_001],
    indexes: [2],
  }),
  'a release by another session': () => ({
    history: begun().entry(granted(1_001, 1)).entry(released(1_001, 2)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'an end that comes twice (case D05)': () => ({
    history: begun().entry(granted(1_001, 1)).entry(released(1_001, 1)).entry(released(1_001, 1)),
    tokens: [1_001],
    indexes: [3, 4],
  }),
  'an expiry of a session that lives': () => ({
    history: begun().entry(granted(1_001, 1)).entry(expired(1_001, 1)),
    tokens: [1_001],
    indexes: [3],
  }),
  'an end with another cause than the session': () => ({
    history: begun().entry(granted(1_001, 1)).entry(ending(1, 'closed'), expired(1_001, 1), ended(1)),
    tokens: [1_001],
    indexes: [3],
  }),
  'a session that is over while it still holds': () => ({
    history: begun().entry(granted(1_001, 1)).entry(ending(1, 'closed'), ended(1)),
    tokens: [],
    indexes: [2, 3],
  }),
  'a session that is over while it still waits': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(ending(2, 'closed'), ended(2)),
    tokens: [],
    indexes: [2, 3],
  }),
  'a session that is over without having ended': () => ({
    history: begun().entry(ended(1)),
    tokens: [],
    indexes: [2],
  }),
  'a session number used again': () => ({
    history: begun().entry(ending(4, 'closed'), ended(4)).entry(opened(4)),
    tokens: [],
    indexes: [1, 3],
  }),
  'a wrong place in the queue': () => ({
    history: begun().entry(granted(1_001, 1), queued('q2', 2, 2)),
    tokens: [],
    indexes: [2],
  }),
  'a grant from the queue to a key that does not wait': () => ({
    history: begun().entry(grantedFromQueue(1_001, 1, 'k', 0)),
    tokens: [1_001],
    indexes: [2],
  }),
  'a grant at once to a key that waits': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(released(1_001, 1), granted(1_002, 2, 'a', { key: 'q2' })),
    tokens: [1_002],
    indexes: [2, 3],
  }),
  'a wrong waiting time': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(100)
      .entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 99)),
    tokens: [1_002],
    indexes: [2, 3],
  }),
  'a refused wait that never was': () => ({
    history: begun().entry(refused('q', 1)),
    tokens: [],
    indexes: [2],
  }),
  'a revoke of another length than one TTL': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 5_000)),
    tokens: [1_001],
    indexes: [1, 3],
  }),
  'an unsafe end that nobody asked for': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(revoked(1_001, 1, true)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'an end of a revoke that had not begun': () => ({
    history: begun().entry(granted(1_001, 1)).entry(revoked(1_001, 1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a configuration that goes back': () => ({
    history: begun().entry(configured(1)),
    tokens: [],
    indexes: [2],
  }),
  'a quarantine that ends without having begun': () => ({
    history: begun().entry({ type: 'unquarantined', name: 'a', by: 'operator' }),
    tokens: [],
    indexes: [2],
  }),
});
