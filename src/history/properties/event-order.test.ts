/** Histories that the property must refuse. */
import { begun, History, opened, tookOver } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('event-order', {
  'a gap': () => ({ history: begun().raw({ index: 3 }), tokens: [], indexes: [3] }),
  'the same index twice (rule L2)': () => ({ history: begun().raw({ index: 1 }), tokens: [], indexes: [1] }),
  'a history that begins in the middle': () => ({
    history: new History().raw({ index: 7, events: [tookOver(1, 5)] }),
    tokens: [],
    indexes: [7],
  }),
  'group time that goes back': () => ({
    history: begun().pass(1_000).entry().raw({ index: 6, at: 999 }),
    tokens: [],
    indexes: [6],
  }),
  'a lineage that changes unannounced': () => ({
    history: begun().raw({ lineage: 'lineage-2', index: 1, events: [tookOver(1, 2_000)] }),
    tokens: [],
    indexes: [1],
  }),
  'events without a new event hash': () => ({
    history: new History()
      .raw({ index: 1, eventHash: 'aa', events: [tookOver(1, 5)] })
      .raw({ index: 2, eventHash: 'aa', events: [opened(1)] }),
    tokens: [],
    indexes: [2],
  }),
  'a new event hash without events': () => ({
    history: new History()
      .raw({ index: 1, eventHash: 'aa', events: [tookOver(1, 5)] })
      .raw({ index: 2, eventHash: 'bb' }),
    tokens: [],
    indexes: [2],
  }),
});
