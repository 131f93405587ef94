/** Histories that the property must refuse. */
import { begun, granted, grantedFromQueue, queued, released } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('fifo', {
  'the second waiter before the first': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(queued('q3', 3, 2))
      .entry(released(1_001, 1), grantedFromQueue(1_002, 3, 'q3', 0)),
    tokens: [1_002],
    indexes: [2, 3, 4],
  }),
  'a newcomer before the queue': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(released(1_001, 1), granted(1_002, 3), queued('q4', 4, 2)),
    tokens: [1_002],
    indexes: [2, 3],
  }),
});
