/** Histories that the property must refuse. */
import { begun, granted, released } from '../history.fixture.ts';
import { ofGrant, refuses, reported } from '../verdicts.fixture.ts';

refuses('durability', {
  'an acknowledged grant that the record does not have': () => ({
    history: begun()
      .client({ ...reported, token: 1_007 })
      .entry(granted(1_001, 1)),
    tokens: [1_007],
    indexes: [],
  }),
  'an acknowledged grant whose token was passed over': () => ({
    history: begun()
      .entry(granted(1_009, 1))
      .client({ ...reported, token: 1_007 }),
    tokens: [1_007],
    indexes: [],
  }),
  'a belief in a token that was passed over': () => ({
    history: begun()
      .entry(granted(1_009, 1))
      .client({ type: 'heldInterval', ...ofGrant, token: 1_007, from: 0, to: 5 }),
    tokens: [1_007],
    indexes: [],
  }),
  'an acknowledged grant with another name': () => ({
    history: begun()
      .entry(granted(1_001, 1, 'b'))
      .client(reported),
    tokens: [1_001],
    indexes: [2],
  }),
  'an acknowledged grant of another session': () => ({
    history: begun().entry(granted(1_001, 2)).client(reported),
    tokens: [1_001],
    indexes: [2],
  }),
  'an acknowledged grant with another key': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ ...reported, key: 'other' }),
    tokens: [1_001],
    indexes: [2],
  }),
  'a keepalive acknowledged to a session that was never committed': () => ({
    history: begun().client({ type: 'keepaliveAcknowledged', session: 7, sentAt: 0, ttlMs: 15_000 }),
    tokens: [],
    indexes: [],
  }),
  'a confirmed release that did not happen': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'releaseConfirmed', ...ofGrant, at: 50 }),
    tokens: [1_001],
    indexes: [2],
  }),
  'a release confirmed before it was committed': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'releaseConfirmed', ...ofGrant, at: 50 })
      .pass(100)
      .entry(released(1_001, 1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a confirmed cancel whose grant goes on': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client({ type: 'cancelConfirmed', session: 1, key: 'key-1001', at: 50 }),
    tokens: [1_001],
    indexes: [2],
  }),
});
