/** Histories that the property must refuse. */
import { begun, ended, ending, expired, granted, revoking } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('exclusion', {
  'two holders of one name': () => ({
    history: begun().entry(granted(1_001, 1)).entry(granted(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'a reader beside a writer': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(granted(1_002, 2, 'a', { mode: 'shared' })),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'a writer beside a reader': () => ({
    history: begun()
      .entry(granted(1_001, 1, 'a', { mode: 'shared' }))
      .entry(granted(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
  }),
  'two grants in one entry': () => ({
    history: begun().entry(granted(1_001, 1), granted(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2],
  }),
  'a grant while a revoke still runs': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .entry(granted(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
  }),
  'a grant to an ending session that was not emptied yet': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .pass(15_000)
      .entry(ending(1))
      .entry(granted(1_002, 2))
      .entry(expired(1_001, 1), ended(1)),
    tokens: [1_001, 1_002],
    indexes: [2, 63],
  }),
});
