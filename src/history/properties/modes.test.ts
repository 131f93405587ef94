/** Histories of shared and semaphore locks that the properties must refuse: who may hold beside whom (rule C2). */
import { begun, configured, granted, type History, queued, released } from '../history.fixture.ts';
import { fromQueue, pool, reader, readerWaits, taker, takerWaits, underEach } from '../modes.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

const cut = (token: number, session: number, until: number) =>
  ({ type: 'revoking', name: 'a', session, token, cause: 'permitsCut', until }) as const;
/** Tokens 1,001 and 1,002, of one permit each, at index 2. */
const twoTakers = (): History => begun().entry(taker(1_001, 1, 1), taker(1_002, 2, 1));

refuses('exclusion', {
  'a third holder of a semaphore of two': () => ({
    history: twoTakers().entry(taker(1_003, 3, 1)),
    tokens: [1_001, 1_002, 1_003],
    indexes: [2, 3],
    options: underEach(pool(2)),
  }),
  'a request for more permits than are left': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2))
      .entry(taker(1_002, 2, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
    options: underEach(pool(3)),
  }),
  'a grant beside the permits that a cut still calls back': () => ({
    history: twoTakers()
      .entry(configured(2), cut(1_002, 2, 15_000))
      .entry(taker(1_003, 3, 1)),
    tokens: [1_001, 1_002, 1_003],
    indexes: [2, 4],
    options: underEach(pool(2), pool(1)),
  }),
  'the permits of a pattern that another one comes before': () => ({
    history: twoTakers(),
    tokens: [1_001, 1_002],
    indexes: [2],
    options: underEach({
      semaphores: [
        { pattern: 'a*', permits: 1 },
        { pattern: 'a', permits: 2 },
      ],
    }),
  }),
  'a reader beside a semaphore holder': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1))
      .entry(reader(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'a semaphore holder beside a writer': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(taker(1_002, 2, 1)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'a writer while one of two readers is left': () => ({
    history: begun().entry(reader(1_001, 1), reader(1_002, 2), released(1_001, 1)).entry(granted(1_003, 3)),
    tokens: [1_002, 1_003],
    indexes: [2, 3],
  }),
});

refuses('rising-tokens', {
  'a reader that got the token of the reader beside it': () => ({
    history: begun()
      .entry(reader(1_001, 1))
      .entry(reader(1_001, 2, { key: 'other' })),
    tokens: [1_001, 1_001],
    indexes: [2, 3],
  }),
});

refuses('fifo', {
  'a reader that overtakes a waiting writer (case F07)': () => ({
    history: begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1))
      .entry(reader(1_002, 3)),
    tokens: [1_002],
    indexes: [2, 3],
  }),
  'a reader from the queue that overtakes a waiting writer': () => ({
    history: begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1), readerWaits(3, 2))
      .entry(reader(1_002, 3, fromQueue(0, 3))),
    tokens: [1_002],
    indexes: [2, 3],
  }),
  'a small request that overtakes a big one': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2), takerWaits(2, 1, 3), takerWaits(3, 2, 1))
      .entry(taker(1_002, 3, 1, fromQueue(0, 3))),
    tokens: [1_002],
    indexes: [2, 3],
    options: underEach(pool(3)),
  }),
  'a newcomer that takes the permits a big request waits for': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2), takerWaits(2, 1, 3))
      .entry(taker(1_002, 3, 1)),
    tokens: [1_002],
    indexes: [2, 3],
    options: underEach(pool(3)),
  }),
});

refuses('limits', {
  'a semaphore grant of a name without permits': () => ({
    history: begun().entry(taker(1_001, 1, 1)),
    tokens: [1_001],
    indexes: [2],
    options: underEach({}),
  }),
  'an exclusive grant of a name with permits': () => ({
    history: begun().entry(granted(1_001, 1)),
    tokens: [1_001],
    indexes: [2],
    options: underEach(pool(2)),
  }),
  'a reader that queues for a name with permits': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1))
      .entry(readerWaits(2, 1)),
    tokens: [],
    indexes: [3],
    options: underEach(pool(1)),
  }),
  'a grant of more permits than there are': () => ({
    history: begun().entry(taker(1_001, 1, 3)),
    tokens: [1_001],
    indexes: [2],
    options: underEach(pool(2)),
  }),
  'a wait for more permits than there are': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2))
      .entry(takerWaits(2, 1, 3)),
    tokens: [],
    indexes: [3],
    options: underEach(pool(2)),
  }),
  'a grant from the queue of more permits than are left after a cut': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2), takerWaits(2, 1, 2))
      .entry(configured(2), cut(1_001, 1, 15_000))
      .entry(released(1_001, 1), taker(1_002, 2, 2, fromQueue(0, 2))),
    tokens: [1_002],
    indexes: [4],
    options: underEach(pool(2), pool(1)),
  }),
  'a reader from the queue though the mode was removed': () => ({
    history: begun()
      .entry(granted(1_001, 1), readerWaits(2, 1), configured(2))
      .entry(released(1_001, 1), reader(1_002, 2, fromQueue(0, 2))),
    tokens: [1_002],
    indexes: [3],
    options: underEach({}, { modes: ['exclusive'] }),
  }),
});
