/** Histories of shared and semaphore locks that the properties must refuse: delays, cuts, waits and beliefs (rules C2, C8, C9). */
import {
  begun,
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
  refused,
  released,
  revoked,
} from '../history.fixture.ts';
import { fromQueue, pool, reader, readerWaits, taker, takerWaits, underEach } from '../modes.fixture.ts';
import { last, refuses } from '../verdicts.fixture.ts';

const cut = (token: number, session: number, until: number) =>
  ({ type: 'revoking', name: 'a', session, token, cause: 'permitsCut', until }) as const;
const revokedByCut = (token: number, session: number) =>
  ({ type: 'revoked', name: 'a', session, token, cause: 'permitsCut', unsafe: false }) as const;
/** Tokens 1,001 and 1,002, of one permit each, at index 2. */
const twoTakers = (): History => begun().entry(taker(1_001, 1, 1), taker(1_002, 2, 1));

/** Session 1 holds beside session 2, and expires at 15 s, index 62, with a lock-delay of 5 s. */
const expiryBeside = (holder: typeof reader): History =>
  begun()
    .entry(holder(1_001, 1), holder(1_002, 2))
    .pass(15_000)
    .entry(ending(1), expired(1_001, 1), delayed(20_000), ended(1));
const delay = { lockDelayMs: 5_000 };

refuses('lock-delay', {
  'a reader let in while the delay runs beside another reader': () => {
    const history = expiryBeside(reader).pass(4_999).entry(reader(1_003, 3));
    return { history, tokens: [1_003], indexes: [62, last(history)], options: underEach(delay) };
  },
  'permits given out while the delay runs': () => {
    const history = expiryBeside((token, session) => taker(token, session, 1)).entry(taker(1_003, 3, 1));
    const options = underEach({ ...delay, ...pool(2) });
    return { history, tokens: [1_003], indexes: [62, last(history)], options };
  },
  'an unclean end without the delay because others hold': () => ({
    history: begun()
      .entry(reader(1_001, 1), reader(1_002, 2))
      .pass(15_000)
      .entry(ending(1), expired(1_001, 1), ended(1)),
    tokens: [1_001],
    indexes: [62],
    options: underEach(delay),
  }),
  'a second unclean end that makes the delay no longer': () => ({
    history: expiryBeside(reader).pass(1_000).entry(ending(2), expired(1_002, 2), ended(2)),
    tokens: [1_002],
    indexes: [66],
    options: underEach(delay),
  }),
  'two unclean ends in one entry, of which one made the delay': () => ({
    history: begun()
      .entry(reader(1_001, 1), reader(1_002, 2))
      .pass(15_000)
      .entry(ending(1), ending(2), expired(1_001, 1), expired(1_002, 2), delayed(20_000), ended(1), ended(2)),
    tokens: [1_001],
    indexes: [62],
    options: underEach(delay),
  }),
});

refuses('bookkeeping', {
  'a delay that makes another one shorter': () => ({
    history: expiryBeside(reader).entry(
      configured(2),
      ending(2),
      expired(1_002, 2),
      delayed(17_000),
      ended(2),
    ),
    tokens: [],
    indexes: [62, 63],
    options: underEach(delay, { lockDelayMs: 2_000 }),
  }),
});

refuses('no-early-expiry', {
  'a cut though the permits suffice': () => ({
    history: twoTakers().entry(configured(2), cut(1_002, 2, 15_000)),
    tokens: [1_002],
    indexes: [2, 3],
    options: underEach(pool(3), pool(2)),
  }),
  'a cut that takes one more than it must': () => ({
    history: twoTakers().entry(configured(2), cut(1_002, 2, 15_000), cut(1_001, 1, 15_000)),
    tokens: [1_001],
    indexes: [2, 3],
    options: underEach(pool(2), pool(1)),
  }),
  'a cut of a name that is no semaphore any more': () => ({
    history: twoTakers().entry(configured(2), cut(1_002, 2, 15_000)),
    tokens: [1_002],
    indexes: [2, 3],
    options: underEach(pool(2), {}),
  }),
  'a cut that takes the older of two': () => ({
    history: twoTakers().entry(configured(2), cut(1_001, 1, 15_000)),
    tokens: [1_001],
    indexes: [2, 3],
    options: underEach(pool(2), pool(1)),
  }),
  'a cut whose holder did not get its TTL': () => {
    const history = twoTakers()
      .entry(configured(2), cut(1_002, 2, 15_000))
      .pass(14_999);
    history.entry(revokedByCut(1_002, 2));
    return { history, tokens: [1_002], indexes: [3, last(history)], options: underEach(pool(2), pool(1)) };
  },
});

refuses('freed-in-time', {
  'permits cut, and nobody asked to give them back': () => ({
    history: twoTakers().entry(configured(2)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
    options: underEach(pool(2), pool(1)),
  }),
  'permits cut, and too few of them called back': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1), taker(1_002, 2, 1), taker(1_003, 3, 1))
      .entry(configured(2), cut(1_003, 3, 15_000)),
    tokens: [1_001, 1_002],
    indexes: [2, 3],
    options: underEach(pool(3), pool(1)),
  }),
  'a cut that never ends': () => {
    const history = twoTakers()
      .entry(configured(2), cut(1_002, 2, 15_000))
      .pass(17_000)
      .entry();
    return { history, tokens: [1_002], indexes: [3], options: underEach(pool(2), pool(1)) };
  },
  'a session that is not over though its name came back into service': () => {
    const history = begun().entry(reader(1_001, 1), quarantined).entry(ending(1, 'closed')).pass(30_000);
    history.entry({ type: 'unquarantined', name: 'a', by: 'operator' }).pass(2_000).entry();
    return { history, tokens: [], indexes: [3] };
  },
  'a session left ending for a wait, beside a hold on a quarantined name': () => {
    const history = begun().entry(reader(1_001, 1), granted(1_002, 2, 'b'), quarantined);
    history
      .entry(queued('q1', 1, 1, { name: 'b' }))
      .entry(ending(1, 'closed'))
      .pass(2_000)
      .entry();
    return { history, tokens: [], indexes: [4] };
  },
});

refuses('liveness', {
  'a reader that waits beside readers once the writer gave up': () => ({
    history: begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1), readerWaits(3, 2))
      .entry(cancelled('q2', 2)),
    tokens: [],
    indexes: [2],
  }),
  'a request that waits though enough permits came back': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1), taker(1_002, 2, 1), takerWaits(3, 1, 1))
      .entry(released(1_001, 1)),
    tokens: [],
    indexes: [2],
    options: underEach(pool(2)),
  }),
  'a request that waits though the permits became more': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1), takerWaits(2, 1, 1))
      .entry(configured(2)),
    tokens: [],
    indexes: [2],
    options: underEach(pool(1), pool(2)),
  }),
  'a run of readers of which only the first was let in': () => ({
    history: begun()
      .entry(granted(1_001, 1), readerWaits(2, 1), readerWaits(3, 2))
      .entry(released(1_001, 1), reader(1_002, 2, fromQueue(0, 2))),
    tokens: [],
    indexes: [2],
  }),
  'a reader that a timer left to the next entry, and that entry forgot': () => ({
    history: begun()
      .entry(reader(1_001, 1), queued('q2', 2, 1, { waitUntil: 500 }), readerWaits(3, 2), readerWaits(4, 3))
      .pass(500)
      .entry(refused('q2', 2), reader(1_002, 3, fromQueue(500, 3)))
      .entry(),
    tokens: [],
    indexes: [2],
  }),
});

refuses('no-ghost-grants', {
  'a reader let in to a quarantined name beside another': () => ({
    history: begun().entry(reader(1_001, 1), quarantined).entry(reader(1_002, 2)),
    tokens: [1_002],
    indexes: [3],
  }),
  'permits given out by a wait that was over': () => ({
    history: begun()
      .entry(taker(1_001, 1, 1), { ...takerWaits(2, 1, 1), waitUntil: 500 } as ReturnType<typeof takerWaits>)
      .pass(500)
      .entry(released(1_001, 1), taker(1_002, 2, 1, fromQueue(500, 2))),
    tokens: [1_002],
    indexes: [2, 4],
    options: underEach(pool(1)),
  }),
});

/** Token 1,001 of session 1 is broken at once at index 3; its client believes until `to`. */
const believedUntil = (to: number) =>
  ({ type: 'heldInterval', session: 1, name: 'a', token: 1_001, from: 0, to }) as const;
const brokenNow = (history: History): History =>
  history.entry(
    { type: 'broken', name: 'a', session: 1, token: 1_001, now: true, reason: '', by: 'me' },
    revoked(1_001, 1, true),
  );

refuses('belief', {
  'a reader that believes while a writer is let in': () => ({
    history: brokenNow(begun().entry(reader(1_001, 1)))
      .pass(100)
      .entry(granted(1_002, 2))
      .client(believedUntil(101)),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
  }),
  'a reader that believes beyond other readers, until a writer came': () => ({
    history: brokenNow(begun().entry(reader(1_001, 1)).client(believedUntil(300)))
      .pass(100)
      .entry(reader(1_002, 2), released(1_002, 2))
      .pass(100)
      .entry(granted(1_003, 3)),
    tokens: [1_001, 1_003],
    indexes: [2, 5],
  }),
  'a belief in the only permit, which another one got': () => ({
    history: brokenNow(begun().entry(taker(1_001, 1, 1)))
      .pass(100)
      .entry(taker(1_002, 2, 1))
      .client(believedUntil(101)),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
    options: underEach(pool(1)),
  }),
  'the same, with the belief on record first': () => ({
    history: brokenNow(
      begun()
        .entry(taker(1_001, 1, 1))
        .client(believedUntil(101)),
    )
      .pass(100)
      .entry(taker(1_002, 2, 1)),
    tokens: [1_001, 1_002],
    indexes: [2, 4],
    options: underEach(pool(1)),
  }),
  'a belief in permits that were all given out again': () => ({
    history: brokenNow(begun().entry(taker(1_001, 1, 2), taker(1_002, 2, 1)))
      .pass(100)
      .entry(taker(1_003, 3, 1))
      .pass(100)
      .entry(taker(1_004, 4, 1))
      .client(believedUntil(201)),
    tokens: [1_001, 1_003],
    indexes: [2, 4],
    options: underEach(pool(3)),
  }),
});
