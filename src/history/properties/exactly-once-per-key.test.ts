/** Histories that the property must refuse. */
import {
  begun,
  cancelled,
  granted,
  grantedFromQueue,
  queued,
  refused,
  released,
} from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('exactly-once-per-key', {
  'a repeat that was granted a second time': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(released(1_001, 1))
      .entry(granted(1_002, 1, 'a', { key: 'key-1001' })),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
  }),
  'a repeat granted on another name while the first is held': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(granted(1_002, 1, 'b', { key: 'key-1001' })),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'a repeat that queued a second time': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(refused('q2', 2, { code: 'QUARANTINED' }))
      .entry(queued('q2', 2, 1)),
    tokens: [],
    indexes: [3, 4],
  }),
  'a holder that is queued under the key it holds with': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(queued('key-1001', 1, 1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a wait that ends in a grant and in a refusal (case B01)': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 0), refused('q2', 2)),
    tokens: [1_002],
    indexes: [3],
  }),
  'a wait that ends twice': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(cancelled('q2', 2))
      .entry(refused('q2', 2, { code: 'QUARANTINED' })),
    tokens: [],
    indexes: [3, 4],
  }),
  'a wait that is cancelled after it was granted': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(released(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 0))
      .entry(cancelled('q2', 2)),
    tokens: [1_002],
    indexes: [3, 4],
  }),
});
