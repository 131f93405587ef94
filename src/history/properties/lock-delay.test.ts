/** Histories that the property must refuse. */
import {
  begun,
  broken,
  cancelled,
  delayed,
  ended,
  ending,
  expired,
  granted,
  grantedFromQueue,
  type History,
  quarantined,
  queued,
  released,
  revoked,
  revoking,
  under,
} from '../history.fixture.ts';
import { expiry, last, refuses } from '../verdicts.fixture.ts';

refuses('lock-delay', {
  'a grant before the end of the delay': () => {
    const history = expiryWith(delayed(20_000)).pass(4_999).entry(granted(1_002, 2));
    return { history, tokens: [1_002], indexes: [62, last(history)] };
  },
  'an expiry without the delay': () => ({
    history: expiry(),
    tokens: [1_001],
    indexes: [62],
    options: under({ lockDelayMs: 5_000 }),
  }),
  'an expiry that grants the next at once': () => ({
    history: begun()
      .entry(granted(1_001, 1), queued('q2', 2, 1))
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), grantedFromQueue(1_002, 2, 'q2', 15_000), ended(1)),
    tokens: [1_001, 1_002],
    indexes: [62],
    options: under({ lockDelayMs: 5_000 }),
  }),
  'a revoked grant without the delay': () => {
    const history = begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .pass(15_000);
    history.entry(revoked(1_001, 1));
    return { history, tokens: [1_001], indexes: [last(history)], options: under({ lockDelayMs: 5_000 }) };
  },
  'a release under revoke without the delay': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .entry(released(1_001, 1)),
    tokens: [1_001],
    indexes: [4],
    options: under({ lockDelayMs: 5_000 }),
  }),
  'a cancel under revoke without the delay': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(revoking(1_001, 1, 15_000))
      .entry(cancelled('key-1001', 1, 1_001)),
    tokens: [1_001],
    indexes: [4],
    options: under({ lockDelayMs: 5_000 }),
  }),
  'a delay after a clean cancel': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(cancelled('key-1001', 1, 1_001), delayed(5_000)),
    tokens: [1_001],
    indexes: [3],
  }),
  'a delay after a clean release': () => ({
    history: begun().entry(granted(1_001, 1)).entry(released(1_001, 1), delayed(5_000)),
    tokens: [1_001],
    indexes: [3],
  }),
  'a delay after a break at once': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(broken(1_001, 1, true), revoked(1_001, 1, true), delayed(5_000)),
    tokens: [1_001],
    indexes: [3],
  }),
  'a delay after an expiry of a quarantined name': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .pass(15_000)
      .entry(quarantined, ending(1), expired(1_001, 1), delayed(20_000), ended(1)),
    tokens: [1_001],
    indexes: [62],
  }),
  'a delay out of nothing': () => ({
    history: begun().entry(delayed(5_000)),
    tokens: [],
    indexes: [2],
  }),
  'a delay of another length': () => ({
    history: expiryWith(delayed(19_000)),
    tokens: [1_001],
    indexes: [62],
    options: under({ lockDelayMs: 5_000 }),
  }),
  'a delay where the namespace has none': () => ({
    history: expiryWith(delayed(15_000)),
    tokens: [1_001],
    indexes: [62],
    options: under({ lockDelayMs: 0 }),
  }),
});

function expiryWith(delay: ReturnType<typeof delayed>): History {
  return begun().entry(granted(1_001, 1)).pass(15_000).entry(ending(1), expired(1_001, 1), delay, ended(1));
}
