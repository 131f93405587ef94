/** Histories that the property must refuse. */
import { begun, configured, granted, opened, queued, under } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('limits', {
  'too many sessions': () => ({
    history: begun(),
    tokens: [],
    indexes: [1],
    options: under({ sessions: 3 }),
  }),
  'a TTL out of bounds': () => ({
    history: begun().entry(opened(5, 4_999)),
    tokens: [],
    indexes: [2],
    options: under({}),
  }),
  'too many held locks': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(granted(1_002, 2, 'b')),
    tokens: [1_002],
    indexes: [3],
    options: under({ heldLocks: 1 }),
  }),
  'too many locks of one client': () => ({
    history: begun()
      .entry(granted(1_001, 2, 'b'))
      .entry(granted(1_002, 1), queued('q', 1, 1, { name: 'b' }))
      .entry(granted(1_003, 1, 'c')),
    tokens: [1_003],
    indexes: [4],
    options: under({ locksPerClient: 2 }),
  }),
  'too many waiters of one name': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .entry(queued('q3', 3, 2)),
    tokens: [],
    indexes: [3],
    options: under({ maxWaitersPerName: 1 }),
  }),
  'too many waiters': () => ({
    history: begun()
      .entry(granted(1_001, 1), granted(1_002, 1, 'b'), queued('q2', 2, 1))
      .entry(queued('q3', 3, 1, { name: 'b' })),
    tokens: [],
    indexes: [3],
    options: under({ waiters: 1 }),
  }),
  'a wait that is too long': () => ({
    history: begun().entry(granted(1_001, 1), queued('q2', 2, 1)),
    tokens: [],
    indexes: [2],
    options: under({ maxWaitMs: 59_999 }),
  }),
  'a mode that is not allowed': () => ({
    history: begun().entry(granted(1_001, 1, 'a', { mode: 'shared' })),
    tokens: [1_001],
    indexes: [2],
    options: under({ modes: ['exclusive', 'semaphore'] }),
  }),
  'a grant where there is no namespace any more': () => ({
    history: begun().entry(configured(2)).entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [3],
    options: { configs: new Map([...(under({}).configs ?? []), [2, null]]) },
  }),
});
