/** Histories of re-entrant locks that the properties must refuse (rule C6). */
import type { LockEvent } from '../../api/entry.ts';
import {
  begun,
  broken,
  cancelled,
  configured,
  delayed,
  ended,
  ending,
  expired,
  granted,
  type History,
  quarantined,
  queued,
  released,
  revoked,
  revoking,
} from '../history.fixture.ts';
import { fromQueue, joined, pool, reader, taker, underEach } from '../modes.fixture.ts';
import { last, refuses, reported } from '../verdicts.fixture.ts';

/** Session 1 holds `a` with token 1,001 under the keys key-1001 and `again`, index 2. */
const twice = (): History => begun().entry(granted(1_001, 1), joined(1_001, 1, 'again'));

refuses('reentrancy', {
  'a join of the grant of another session': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(joined(1_001, 2, 'k')),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a join by another owner': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(joined(1_001, 1, 'k', { owner: 'other' })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a reader that joined a writer': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(joined(1_001, 1, 'k', { mode: 'shared' })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a join with other permits': () => ({
    history: begun()
      .entry(taker(1_001, 1, 2))
      .entry(joined(1_001, 1, 'k', { mode: 'semaphore', permits: 1 })),
    tokens: [1_001],
    indexes: [2, 3],
    options: underEach(pool(2)),
  }),
  'a join of a grant that is being revoked': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(joined(1_001, 1, 'k')),
    tokens: [1_001],
    indexes: [2, 3, 4],
  }),
  'a join from the queue of a grant that is being revoked': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000), queued('q1', 1, 1))
      .entry(joined(1_001, 1, 'q1', fromQueue(0, 1))),
    tokens: [1_001],
    indexes: [2, 3, 4],
  }),
});

refuses('rising-tokens', {
  'a join of a grant that is over': () => ({
    history: begun()
      .entry(granted(1_001, 1), released(1_001, 1))
      .entry(joined(1_001, 1, 'k')),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a join with a token of its own': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(joined(1_002, 1, 'k')),
    tokens: [1_002],
    indexes: [3],
  }),
});

refuses('fifo', {
  'a join from the queue by one who is not at its head': () => ({
    history: begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1), queued('q1', 1, 2, { mode: 'shared' }))
      .entry(joined(1_001, 1, 'q1', { mode: 'shared', ...fromQueue(0, 1) })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
});

const keys = (count: number): LockEvent[] =>
  Array.from({ length: count }, (_, i) => joined(1_001, 1, `again-${i}`));

refuses('limits', {
  'a 65th key of one grant': () => ({
    history: begun()
      .entry(granted(1_001, 1), ...keys(63))
      .entry(joined(1_001, 1, 'once more')),
    tokens: [1_001],
    indexes: [3],
  }),
  'a join though the namespace is gone': () => ({
    history: begun()
      .entry(granted(1_001, 1), configured(2))
      .entry(joined(1_001, 1, 'k')),
    tokens: [1_001],
    indexes: [3],
    options: underEach({}, null),
  }),
  'a join though the mode was removed': () => ({
    history: begun()
      .entry(reader(1_001, 1), configured(2))
      .entry(joined(1_001, 1, 'k', { mode: 'shared' })),
    tokens: [1_001],
    indexes: [3],
    options: underEach({}, { modes: ['exclusive'] }),
  }),
});

refuses('exactly-once-per-key', {
  'a repeat that joined twice': () => ({
    history: twice().entry(joined(1_001, 1, 'again')),
    tokens: [1_001, 1_001],
    indexes: [2, 3],
  }),
  'a repeat that joined what it had been granted': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(joined(1_001, 1, 'key-1001')),
    tokens: [1_001, 1_001],
    indexes: [2, 3],
  }),
  'a repeat of a released key that joined the grant its sister still holds': () => ({
    history: twice()
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 }))
      .entry(joined(1_001, 1, 'again')),
    tokens: [1_001, 1_001],
    indexes: [2, 4],
  }),
  'a repeat that queued behind the grant it had joined': () => ({
    history: twice().entry(queued('again', 1, 1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
});

refuses('bookkeeping', {
  'a release with the key of another acquire': () => ({
    history: twice().entry(released(1_001, 1, 'a', { key: 'never', remaining: 1 })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a key released twice while another holds': () => ({
    history: twice()
      .entry(joined(1_001, 1, 'third'), released(1_001, 1, 'a', { key: 'again', remaining: 2 }))
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 })),
    tokens: [1_001],
    indexes: [2, 4],
  }),
  'a release that leaves one key too few': () => ({
    history: twice().entry(released(1_001, 1, 'a', { key: 'again', remaining: 0 })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a last release that leaves a key': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .entry(released(1_001, 1, 'a', { remaining: 1 })),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a cancel that counts its own key as remaining': () => ({
    history: twice().entry(cancelled('again', 1, 1_001, 2)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a cancel of a key that was released': () => ({
    history: twice()
      .entry(joined(1_001, 1, 'third'), released(1_001, 1, 'a', { key: 'again', remaining: 2 }))
      .entry(cancelled('again', 1, 1_001, 1)),
    tokens: [1_001],
    indexes: [2, 4],
  }),
  'a close that leaves a key': () => ({
    history: twice().entry(
      ending(1, 'closed'),
      released(1_001, 1, 'a', { cause: 'close', key: 'again', remaining: 0 }),
      ended(1),
    ),
    tokens: [1_001],
    indexes: [2, 3],
  }),
});

refuses('lock-delay', {
  'a last release under revoke without the delay': () => ({
    history: twice()
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 }))
      .entry(released(1_001, 1, 'a', { key: 'key-1001' })),
    tokens: [1_001],
    indexes: [5],
    options: underEach({ lockDelayMs: 5_000 }),
  }),
  'a delay after one of two keys was released': () => ({
    history: twice()
      .entry(broken(1_001, 1, false), revoking(1_001, 1, 15_000))
      .entry(released(1_001, 1, 'a', { key: 'again', remaining: 1 }), {
        ...delayed(5_000),
        name: 'b',
      } as LockEvent),
    tokens: [],
    indexes: [4],
  }),
  'a join from the queue while the delay runs': () => {
    const history = begun()
      .entry(reader(1_001, 1), reader(1_002, 2))
      .pass(15_000)
      .entry(ending(2), expired(1_002, 2), delayed(20_000), ended(2));
    history.entry(queued('q1', 1, 1, { mode: 'shared', waitUntil: 90_000 }));
    history.entry(joined(1_001, 1, 'q1', { mode: 'shared', ...fromQueue(0, 1) }));
    return { history, tokens: [1_001], indexes: [62, last(history)] };
  },
});

refuses('no-ghost-grants', {
  'a join for a session that is ending': () => ({
    history: begun()
      .entry(granted(1_001, 1), quarantined, ending(1, 'closed'))
      .entry({ type: 'unquarantined', name: 'a', by: 'operator' }, joined(1_001, 1, 'k'))
      .entry(released(1_001, 1, 'a', { cause: 'close' }), ended(1)),
    tokens: [1_001],
    indexes: [2, 3],
  }),
  'a join of a grant on a quarantined name': () => ({
    history: begun()
      .entry(granted(1_001, 1), quarantined)
      .entry(joined(1_001, 1, 'k')),
    tokens: [1_001],
    indexes: [3],
  }),
  'a join under a key that was cancelled': () => ({
    history: twice()
      .entry(cancelled('again', 1, 1_001, 1))
      .entry(joined(1_001, 1, 'again')),
    tokens: [1_001],
    indexes: [3, 4],
  }),
});

refuses('durability', {
  'an acknowledged join that the record does not have': () => ({
    history: begun()
      .entry(granted(1_001, 1))
      .client(reported, { ...reported, key: 'again' }),
    tokens: [1_001],
    indexes: [2],
  }),
  'a confirmed release of a key that goes on holding': () => ({
    history: twice().client({
      type: 'releaseConfirmed',
      session: 1,
      name: 'a',
      token: 1_001,
      key: 'again',
      at: 5,
    }),
    tokens: [1_001],
    indexes: [2],
  }),
});

refuses('loss-is-told', {
  'a joined grant whose loss nobody told': () => ({
    history: twice()
      .client({ ...reported, key: 'again' })
      .entry(broken(1_001, 1, true), revoked(1_001, 1, true))
      .pass(20_000)
      .entry(),
    tokens: [1_001],
    indexes: [2, 3],
  }),
});
