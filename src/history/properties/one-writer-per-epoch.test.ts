/** Histories that the property must refuse. */
import { begun, opened, tookOver } from '../history.fixture.ts';
import { refuses } from '../verdicts.fixture.ts';

refuses('one-writer-per-epoch', {
  'an entry of an older epoch': () => {
    const history = begun();
    history.epoch = 2;
    history.entry(tookOver(2, 2_000)).epoch = 1;
    return { history: history.entry(opened(5)), tokens: [], indexes: [2, 3] };
  },
  'a second take-over of the same epoch': () => ({
    history: begun().entry(tookOver(1, 2_000)),
    tokens: [],
    indexes: [1, 2],
  }),
  'an epoch that begins without a take-over': () => {
    const history = begun();
    history.epoch = 2;
    return { history: history.entry(opened(5)), tokens: [], indexes: [2] };
  },
  'a take-over that names another epoch': () => {
    const history = begun();
    history.epoch = 2;
    return { history: history.entry(tookOver(3, 2_000)), tokens: [], indexes: [1, 2] };
  },
  'an epoch that two servers won': () => {
    const history = begun();
    const { lineage } = history;
    history.run({ type: 'epochLed', lineage, epoch: 1, server: 'one' });
    history.run({ type: 'epochLed', lineage, epoch: 1, server: 'two' });
    return { history, tokens: [], indexes: [] };
  },
});
