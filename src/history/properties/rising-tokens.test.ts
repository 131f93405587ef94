/** Histories that the property must refuse. */
import { begun, granted, released, tookOver } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('rising-tokens', {
  'the same token twice': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(released(1_001, 1))
      .entry(granted(1_001, 2, 'a', { key: 'other' })),
    tokens: [1_001, 1_001],
    indexes: [2, 4],
  }),
  'a lower token of the same name': () => ({
    history: begun().entry(granted(1_005, 1)).entry(released(1_005, 1)).entry(granted(1_004, 2)),
    tokens: [1_005, 1_004],
    indexes: [2, 4],
  }),
  'a lower token of another name': () => ({
    history: begun()
      .entry(granted(1_005, 1))
      .entry(granted(1_004, 2, 'b')),
    tokens: [1_005, 1_004],
    indexes: [2, 3],
  }),
  'a token below the take-over': () => ({
    history: begun().entry(granted(999, 1)),
    tokens: [1_000, 999],
    indexes: [1, 2],
  }),
  'a take-over that sets the counter back': () => {
    const history = begun().entry(granted(1_005, 1)).entry(released(1_005, 1));
    history.epoch = 2;
    return { history: history.entry(tookOver(2, 1_002)), tokens: [1_005, 1_002], indexes: [2, 4] };
  },
  'a new lineage without a floor (a restored backup)': () => {
    const history = begun().entry(granted(1_005, 1));
    history.run({ type: 'newLineage', lineage: 'lineage-2' });
    Object.assign(history, { lineage: 'lineage-2', index: 0 });
    return { history: history.entry(tookOver(1, 1_000)), tokens: [1_005, 1_000], indexes: [1, 2] };
  },
  'a token beyond 2^53 - 1': () => ({
    history: begun().entry(granted(2 ** 53, 1)),
    tokens: [2 ** 53],
    indexes: [2],
  }),
});
