/** A front end while leaders come and go: clients keep their streams, their sessions and what they have asked (rules S2, S4, S8). */
import { describe, expect, test, vi } from 'vitest';
import { acquireCommand, namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type {
  Answer,
  ClientRequestBody,
  LeaderGroup,
  Position,
  RelayFrame,
  ServerFrame,
} from '../../api/wire.ts';
import { ClientLimiters } from './client-limiters.ts';
import { FrontEnd } from './front-end.ts';

const IDENTITY = { account: 'a/b', podUid: '' };
const PATIENCE_MS = 5_000;
const first: Position = { lineage: 'l', epoch: 3, index: 10 };
const second: Position = { lineage: 'l', epoch: 4, index: 20 };
const acquire = acquireCommand({ session: 7, key: 'k' });
const open = { type: 'open', client: 'c', ttlMs: 5_000, maxHoldMs: 0, secretHash: 'ab'.repeat(32) } as const;
const done = { type: 'done' } as const;

class Bench {
  readonly runtime = new VirtualRuntime();
  isLeaderless = true;
  isLedElsewhere = false;
  readonly frontEnd = new FrontEnd(this.runtime, () => namespaceConfig(), {
    patienceMs: PATIENCE_MS,
    isLeaderless: () => this.isLeaderless,
    isLedElsewhere: () => this.isLedElsewhere,
  });
  readonly #ids = new Map<number, number>();

  /** A leader comes; what it is sent. */
  leader(position: Position): RelayFrame[] {
    const sent: RelayFrame[] = [];
    this.frontEnd.setLeader({ position, send: (frame) => void sent.push(frame) });
    return sent;
  }

  client() {
    const frames: ServerFrame[] = [];
    let isClosed = false;
    const stream = this.frontEnd.connect(IDENTITY, {
      onFrame: (frame) => void frames.push(frame),
      onClose: () => {
        isClosed = true;
      },
    });
    const number = this.frontEnd.clients;
    const ask = (...bodies: readonly ClientRequestBody[]): number[] => {
      const requests = bodies.map((body) => ({ id: this.#nextId(number), body }));
      stream.send({ format: 1, requests });
      return requests.map(({ id }) => id);
    };
    return { number, frames, stream, ask, isClosed: () => isClosed };
  }

  tell(client: number, says: Partial<LeaderGroup>, position = first): void {
    const group = { client, answers: [], notices: [], keepalives: [], ...says };
    this.frontEnd.fromLeader({ position, groups: [group] });
  }

  answer(client: number, id: number | undefined, body: Answer['body'], position = first): void {
    this.tell(client, { answers: [{ id: id as number, body }] }, position);
  }

  #nextId(client: number): number {
    const id = (this.#ids.get(client) ?? 0) + 1;
    this.#ids.set(client, id);
    return id;
  }
}

const requestsIn = (frames: readonly RelayFrame[]) =>
  frames.flatMap(({ groups }) =>
    groups.flatMap(({ client, requests }) => requests.map(({ id }) => [client, id])),
  );

describe('rule S4: a new leader', () => {
  test('is not sent an acquire whose cancel follows: if both were committed, it would be granted again', () => {
    const bench = new Bench();
    bench.leader(first);
    const a = bench.client();
    const [cancelled, , kept] = a.ask(
      acquire,
      { type: 'cancel', session: 7, attach: 1, key: 'k', acks: [] },
      acquireCommand({ session: 7, key: 'other' }),
    );
    const sent = bench.leader(second);
    expect(requestsIn(sent)).toEqual([
      [1, 2],
      [1, kept],
    ]);
    const answers = a.frames.flatMap((frame) => frame.answers);
    expect(answers.map(({ id, body }) => [id, body.type])).toEqual([[cancelled, 'rejected']]);
  });

  test('is not sent an acquire whose outcome was acknowledged: a notice told of it, and its key may be free again', () => {
    const bench = new Bench();
    bench.leader(first);
    const a = bench.client();
    const acks = ['k'];
    const release = { type: 'release', session: 7, attach: 1, name: 'a', token: 1, key: '', acks } as const;
    const [known, , , kept] = a.ask(acquire, release, { ...acquire, session: 8 }, release);
    const sent = bench.leader(second);
    expect(requestsIn(sent)).toEqual([2, 3, kept].map((id) => [1, id]));
    const answers = a.frames.flatMap((frame) => frame.answers);
    expect(answers.map(({ id, body }) => [id, body.type])).toEqual([[known, 'rejected']]);
  });

  test('gets the sessions first, then the end of them, then what has no answer, in order', () => {
    const bench = new Bench();
    bench.leader(first);
    const [a, b] = [bench.client(), bench.client()];
    const [opened] = a.ask(open);
    bench.answer(a.number, opened, { type: 'opened', session: 7 });
    const [attached] = b.ask({ type: 'attachWithSecret', session: 9, attach: 4, secret: 's' });
    bench.answer(
      b.number,
      attached,
      { type: 'attached', ttlMs: 5_000, grants: [], waits: [] },
      { ...first, index: 12 },
    );
    const [kept, answered] = a.ask(acquire, acquireCommand({ session: 7, key: 'other' }));
    bench.answer(a.number, answered, { type: 'granted', token: 5 }, { ...first, index: 14 });
    const [late] = b.ask({ type: 'cancel', session: 9, attach: 4, key: 'k', acks: [] });
    const sent = bench.leader(second);
    expect(sent[0]).toEqual({
      format: 1,
      groups: [],
      closed: [],
      reattach: {
        sessions: [
          { client: 1, session: 7, attach: 1 },
          { client: 2, session: 9, attach: 4 },
        ],
        seen: { ...first, index: 14 },
      },
    });
    expect(sent[1]).toEqual({ format: 1, groups: [], closed: [], allAttached: true });
    expect(requestsIn(sent.slice(2))).toEqual([
      [1, kept],
      [2, late],
    ]);
    expect([a.isClosed(), b.isClosed()]).toEqual([false, false]);
  });

  test('gets nothing of sessions that are over, of clients that are gone, or of keepalives', () => {
    const bench = new Bench();
    bench.leader(first);
    const [a, b] = [bench.client(), bench.client()];
    for (const session of [7, 8, 9]) {
      const [id] = a.ask(open);
      bench.answer(a.number, id, { type: 'opened', session });
    }
    const [close] = a.ask({ type: 'closeSession', session: 7, attach: 1, clean: true });
    bench.answer(a.number, close, done);
    bench.tell(a.number, {
      notices: [{ session: 8, attach: 1, event: { type: 'sessionEnding', session: 8, cause: 'expired' } }],
    });
    bench.tell(a.number, {
      keepalives: [{ number: 1, sessions: [{ session: 9, attach: 1, alive: false }] }],
    });
    b.ask(acquire);
    b.stream.close();
    a.stream.send({ format: 1, requests: [], keepalive: { number: 2, sessions: [] } });
    expect(bench.leader(second)).toEqual([{ format: 1, groups: [], closed: [], allAttached: true }]);
  });

  test('is heard, and the one before no more', () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    const [id] = client.ask(acquire);
    bench.leader(second);
    bench.answer(client.number, id, { type: 'granted', token: 6 }, second);
    bench.answer(client.number, id, { type: 'granted', token: 5 }, { ...first, index: 30 });
    expect(client.frames.flatMap(({ answers }) => answers)).toEqual([
      { id, body: { type: 'granted', token: 6 } },
    ]);
  });

  test('is sent a bulk in parts', () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    for (let session = 1; session <= 2_500; session++) {
      const [id] = client.ask(open);
      bench.answer(client.number, id, { type: 'opened', session });
    }
    const sizes = bench.leader(second).map(({ reattach }) => reattach?.sessions.length);
    expect(sizes).toEqual([1_000, 1_000, 500, undefined]);
  });
});

describe('while nobody leads', () => {
  test('requests wait for the next leader', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    bench.frontEnd.setLeader(null);
    const ids = client.ask(acquire, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(PATIENCE_MS - 1_000);
    expect(client.frames.flatMap(({ answers }) => answers)).toEqual([]);
    expect(requestsIn(bench.leader(second))).toEqual(ids.map((id) => [1, id]));
  });

  test('but not for ever: then UNAVAILABLE, and the next leader is not asked', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    const ids = client.ask(acquire);
    bench.frontEnd.setLeader(null);
    ids.push(...client.ask({ type: 'closeSession', session: 7, attach: 1, clean: true }));
    await bench.runtime.pass(PATIENCE_MS + 600);
    const answers = client.frames.flatMap((frame) => frame.answers);
    expect(answers.map(({ id }) => id)).toEqual(ids);
    for (const { body } of answers) expect(body).toMatchObject({ type: 'rejected', code: 'UNAVAILABLE' });
    expect(requestsIn(bench.leader(second))).toEqual([]);
  });

  test('rule S8: clients hear so at once, and twice a second until somebody does', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    bench.frontEnd.setLeader(null);
    expect(client.frames.map(({ leading }) => leading)).toEqual([false]);
    await bench.runtime.pass(2_100);
    expect(client.frames.map(({ leading }) => leading)).toEqual([false, false, false, false, false]);
    bench.leader(second);
    await bench.runtime.pass(2_000);
    // Once more, and that somebody does: their keepalives go out again at once.
    expect(client.frames.slice(5).map(({ leading }) => leading)).toEqual([false, true]);
  });

  test('rule S8: they hear nothing when somebody leads whom this replica cannot reach', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    bench.isLeaderless = false;
    bench.frontEnd.setLeader(null);
    await bench.runtime.pass(2_000);
    expect(client.frames).toEqual([]);
    bench.isLeaderless = true;
    await bench.runtime.pass(500);
    expect(client.frames.map(({ leading }) => leading)).toEqual([false]);
  });
});

test('what has no answer is bounded; what gives something back has a bound of its own (rule S9)', () => {
  const bench = new Bench();
  bench.leader(first);
  const client = bench.client();
  const release = { type: 'release', session: 7, attach: 1, name: 'a', token: 1, key: '', acks: [] } as const;
  for (let i = 0; i < 10_000; i++) client.ask(release);
  const [refused] = client.ask(open);
  expect(client.frames.at(-1)?.answers).toMatchObject([{ id: refused, body: { code: 'UNAVAILABLE' } }]);
  const before = client.frames.length;
  client.ask(release);
  expect(client.frames).toHaveLength(before);
});

describe('somebody leads, but out of reach of this front end (rule S8)', () => {
  test('for a second: its clients are sent away, and so are those who come', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    bench.isLeaderless = false;
    bench.isLedElsewhere = true;
    bench.frontEnd.setLeader(null);
    await bench.runtime.pass(900);
    expect(client.isClosed()).toBe(false);
    await bench.runtime.pass(700);
    expect(client.isClosed()).toBe(true);
    expect(bench.frontEnd.clients).toBe(0);
    const late = bench.client();
    await bench.runtime.pass(600);
    expect(late.isClosed()).toBe(true);
  });

  test('whoever is sent away leaves its limiter, or those of gone identities would add up', async () => {
    const bench = new Bench();
    const left = vi.fn();
    vi.spyOn(ClientLimiters.prototype, 'of').mockReturnValue({
      take: () => 0,
      giveBack: () => undefined,
      leave: left,
    });
    bench.client();
    bench.client();
    bench.isLedElsewhere = true;
    await bench.runtime.pass(2_000);
    expect(left).toHaveBeenCalledTimes(2);
    vi.restoreAllMocks();
  });

  test('for less: they stay', async () => {
    const bench = new Bench();
    bench.leader(first);
    const client = bench.client();
    for (let round = 0; round < 4; round++) {
      bench.isLedElsewhere = true;
      bench.frontEnd.setLeader(null);
      await bench.runtime.pass(900);
      bench.leader(second);
      await bench.runtime.pass(100);
    }
    expect(client.isClosed()).toBe(false);
  });

  test('from its start on: clients do not wait there', async () => {
    const bench = new Bench();
    bench.isLedElsewhere = true;
    const client = bench.client();
    await bench.runtime.pass(2_100);
    expect(client.isClosed()).toBe(true);
  });
});

describe('what a client leaves at a front end while nobody answers', () => {
  const acks = Array.from({ length: 256 }, (_, at) => `${at}`.padStart(64, 'k'));
  const release = { type: 'release', session: 7, attach: 1, name: 'a', token: 1, key: '', acks } as const;
  const releases = (count: number) => Array.from({ length: count }, () => release);
  const refusedOf = (frames: readonly ServerFrame[]) => frames.flatMap(({ answers }) => answers);

  test('is bounded in bytes, not only in number: a few hundred megabytes of releases took the memory of everybody', () => {
    const bench = new Bench();
    const [client, other] = [bench.client(), bench.client()];
    client.ask(...releases(300));
    expect(refusedOf(client.frames)).toEqual([]);
    // What gives something back has room that acquires have not (rule S9).
    client.ask(acquire);
    expect(refusedOf(client.frames)).toMatchObject([{ body: { code: 'UNAVAILABLE' } }]);
    client.ask(...releases(1_000));
    expect(refusedOf(client.frames).length).toBeGreaterThan(700);
    other.ask(acquire, release);
    expect(refusedOf(other.frames)).toEqual([]);
  });

  test('makes room again once it is answered', () => {
    const bench = new Bench();
    const client = bench.client();
    bench.leader(first);
    for (let round = 0; round < 10; round++) {
      const ids = client.ask(...releases(300));
      for (const id of ids) bench.answer(client.number, id, done);
    }
    expect(refusedOf(client.frames).filter(({ body }) => body.type !== 'done')).toEqual([]);
  });

  test('is no mark of any size', () => {
    const bench = new Bench();
    const sent = bench.leader(first);
    const client = bench.client();
    const mark = { lineage: 'x'.repeat(10_000_000), epoch: 1, index: 1, hash: '', seal: '' };
    client.stream.send({ format: 1, requests: [], mark });
    bench.leader(second);
    expect(sent.flatMap(({ groups }) => groups)).toEqual([]);
  });
});
