/** Histories that the property must refuse. */
import { begun, broken, granted, revoked } from '../history.fixture.ts';
import { expiry, ofGrant, refuses, reported } from '../verdicts.fixture.ts';

refuses('loss-is-told', {
  'an expiry that nobody told the client': () => ({
    history: expiry().client(reported).pass(20_000).entry(),
    tokens: [1_001],
    indexes: [2, 62],
  }),
  'a loss told too late': () => ({
    history: expiry()
      .client(reported)
      .pass(20_000)
      .client({ type: 'lost', ...ofGrant, at: 31_001 }),
    tokens: [1_001],
    indexes: [2, 62],
  }),
  'a revoked grant that nobody told': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client(reported)
      .entry(broken(1_001, 1, true), revoked(1_001, 1, true))
      .pass(20_000)
      .entry(),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a client that was resumed and still not told': () => ({
    history: expiry()
      .client(reported)
      .client(
        { type: 'clientStopped', session: 1, at: 100 },
        { type: 'clientResumed', session: 1, at: 20_000 },
      )
      .pass(30_000)
      .entry(),
    tokens: [1_001],
    indexes: [2, 62],
  }),
  'a client that had been resumed before, and was not told': () => ({
    history: expiry()
      .client(reported)
      .client({ type: 'clientStopped', session: 1, at: 100 }, { type: 'clientResumed', session: 1, at: 200 })
      .pass(20_000)
      .entry(),
    tokens: [1_001],
    indexes: [2, 62],
  }),
  'a loss told twice (case A11)': () => ({
    history: expiry()
      .client(reported)
      .client({ type: 'lost', ...ofGrant, at: 15_000 })
      .client({ type: 'lost', ...ofGrant, at: 15_100 }),
    tokens: [1_001],
    indexes: [2, 62],
  }),
});
