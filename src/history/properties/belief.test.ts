/** Histories that the property must refuse. */
import {
  begun,
  broken,
  configured,
  ended,
  ending,
  expired,
  granted,
  opened,
  released,
  revoked,
  revoking,
  tookOver,
} from '../history.fixture.ts';
import { ofGrant, refuses } from '../verdicts.fixture.ts';

refuses('belief', {
  'a client that believes it holds while the next is granted': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), ended(1), granted(1_002, 2))
      .client({ type: 'heldInterval', ...ofGrant, from: 10, to: 15_001 })
      .client({ type: 'clientStopped', session: 1, at: 15_001 }),
    tokens: [1_001, 1_002],
    indexes: [2, 62],
  }),
  'the same, with the belief on record before the grant': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'heldInterval', ...ofGrant, from: 10, to: 900 })
      .pass(500)
      .entry(released(1_001, 1), granted(1_002, 2)),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
  }),
  'a client that believes in it after a break that was not `--now`': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .pass(500)
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_500))
      .pass(15_000)
      .entry(revoked(1_001, 1), granted(1_002, 2))
      .client({ type: 'heldInterval', ...ofGrant, from: 10, to: 15_501 })
      .client({ type: 'clientStopped', session: 1, at: 15_501 }),
    tokens: [1_001, 1_002],
    indexes: [2, 64],
  }),
  'a client that believes it before the grant': () => ({
    history: begun()
      .pass(100)
      .entry(granted(1_001, 1))
      .client({ type: 'heldInterval', ...ofGrant, from: 99, to: 200 }),
    tokens: [1_001],
    indexes: [2],
  }),
  'a client that believes it again after it was told lost': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'lost', ...ofGrant, at: 100 })
      .client({ type: 'heldInterval', ...ofGrant, from: 200, to: 300 }),
    tokens: [1_001],
    indexes: [2],
  }),
  'a believer of an old lineage while the new one grants (rule S10)': () => {
    const history = begun().entry(granted(1_001, 1));
    history.client({ type: 'heldInterval', ...ofGrant, from: 0, to: 500 });
    history.run({ type: 'newLineage', lineage: 'lineage-2' });
    Object.assign(history, { lineage: 'lineage-2', index: 0, at: 100 });
    history.entry(tookOver(1, 2_000), configured(1), opened(1), granted(2_001, 1));
    return { history, tokens: [1_001, 2_001], indexes: [1, 2] };
  },
});
