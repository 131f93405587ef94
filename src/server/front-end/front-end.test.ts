/** The part that clients connect to: what it refuses itself (S9), what it passes on, and that clients do not disturb each other. */
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { NamespaceConfig } from '../../api/config.ts';
import type {
  ClientRequestBody,
  ClientStream,
  KeepaliveAnswer,
  LeaderGroup,
  Position,
  RelayFrame,
  ServerFrame,
} from '../../api/wire.ts';
import { sha256 } from '../../core/index.ts';
import { FrontEnd } from './front-end.ts';

const IDENTITY = { account: 'dev/developer', podUid: '' };
const POSITION: Position = { lineage: 'l', epoch: 3, index: 9 };

class Bench {
  readonly runtime = new VirtualRuntime();
  readonly relayed: RelayFrame[] = [];
  readonly frontEnd: FrontEnd;
  config: NamespaceConfig | null;
  #lastId = 0;

  constructor(differs: Partial<NamespaceConfig> = {}) {
    this.config = namespaceConfig(differs);
    this.frontEnd = new FrontEnd(this.runtime, () => this.config);
    this.frontEnd.setLeader({ position: POSITION, send: (frame) => void this.relayed.push(frame) });
  }

  client(onFrame?: (frame: ServerFrame) => void): Client {
    return new Client(this, onFrame);
  }

  nextId(): number {
    return ++this.#lastId;
  }

  /** What the leader says to one client. */
  tell(client: number, says: Partial<LeaderGroup>, position: Position = POSITION): void {
    const group = { client, answers: [], notices: [], keepalives: [], ...says };
    this.frontEnd.fromLeader({ position, groups: [group] });
  }
}

class Client {
  readonly frames: ServerFrame[] = [];
  isClosed = false;
  readonly stream: ClientStream;
  readonly #bench: Bench;

  constructor(bench: Bench, onFrame?: (frame: ServerFrame) => void) {
    this.#bench = bench;
    this.stream = bench.frontEnd.connect(IDENTITY, {
      onFrame: (frame) => {
        this.frames.push(frame);
        onFrame?.(frame);
      },
      onClose: () => {
        this.isClosed = true;
      },
    });
  }

  ask(...bodies: readonly ClientRequestBody[]): number[] {
    const requests = bodies.map((body) => ({ id: this.#bench.nextId(), body }));
    this.stream.send({ format: 1, requests });
    return requests.map(({ id }) => id);
  }

  get answers() {
    return this.frames.flatMap(({ answers }) => answers);
  }
}

const acquire = acquireCommand({ session: 1, key: 'k' });
const GIVES_BACK: readonly ClientRequestBody[] = [
  { type: 'release', session: 1, attach: 1, name: 'a', token: 1, key: '', acks: [] },
  { type: 'cancel', session: 1, attach: 1, key: 'k', acks: [] },
  { type: 'closeSession', session: 1, attach: 1, clean: true },
  { type: 'attachWithSecret', session: 1, attach: 2, secret: 's' },
];

test('requests under one id do not slip past the limit of what may wait', () => {
  const bench = new Bench();
  const client = bench.client();
  const release = GIVES_BACK[0] as ClientRequestBody;
  client.stream.send({ format: 1, requests: [1, 1, 2].map((id) => ({ id, body: release })) });
  expect(bench.relayed[0]?.groups[0]?.requests.map(({ id }) => id)).toEqual([1, 2]);
  expect(client.answers).toMatchObject([{ id: 1, body: { code: 'INVALID', field: 'id' } }]);
  bench.tell(1, { answers: [{ id: 1, body: { type: 'done' } }] });
  client.stream.send({ format: 1, requests: [{ id: 1, body: release }] });
  expect(bench.relayed[1]?.groups[0]?.requests.map(({ id }) => id)).toEqual([1]);
});

describe('rule S9: limits of operations per second', () => {
  test('a client over its limit is refused with RATE_LIMITED, the limit and when to come back', () => {
    const bench = new Bench({ operationsPerSecondPerClient: 10 });
    const client = bench.client();
    const ids = client.ask(...Array.from({ length: 15 }, () => acquire));
    expect(bench.relayed[0]?.groups[0]?.requests.map(({ id }) => id)).toEqual(ids.slice(0, 10));
    expect(client.answers.map(({ id }) => id)).toEqual(ids.slice(10));
    for (const { body } of client.answers) {
      expect(body).toMatchObject({ type: 'rejected', code: 'RATE_LIMITED', limit: 10 });
      const { retryAfterMs } = body as { retryAfterMs: number };
      expect(retryAfterMs).toBeGreaterThan(99);
      expect(retryAfterMs).toBeLessThanOrEqual(1_101);
    }
    // With jitter: those who are refused together must not come back together.
    expect(
      new Set(client.answers.map(({ body }) => (body as { retryAfterMs: number }).retryAfterMs)).size,
    ).toBeGreaterThan(1);
  });

  test('after the time it names there is room again', async () => {
    const bench = new Bench({ operationsPerSecondPerClient: 2 });
    const client = bench.client();
    client.ask(acquire, acquire, acquire);
    const [refused] = client.answers.map(({ body }) => (body as { retryAfterMs: number }).retryAfterMs);
    await bench.runtime.pass(refused ?? 0);
    client.ask(acquire);
    expect(client.answers).toHaveLength(1);
    expect(bench.relayed).toHaveLength(2);
  });

  test('reads count as well; what gives something back or keeps it never does, nor does a keepalive', () => {
    const bench = new Bench({ operationsPerSecondPerClient: 1, operationsPerSecond: 1 });
    const client = bench.client();
    const [, second, third] = client.ask(
      acquire,
      { type: 'getLock', name: 'a' },
      { type: 'listLocks', prefix: '', after: '', limit: 1 },
    );
    expect(client.answers.map(({ id }) => id)).toEqual([second, third]);
    for (let i = 0; i < 500; i++) client.ask(...GIVES_BACK);
    client.stream.send({ format: 1, requests: [], keepalive: { number: 1, sessions: [] } });
    expect(client.answers).toHaveLength(2);
    const passed = bench.relayed.flatMap(({ groups }) => groups.flatMap(({ requests }) => requests));
    expect(passed).toHaveLength(1 + 500 * GIVES_BACK.length);
    expect(bench.relayed.at(-1)?.groups[0]).toMatchObject({ requests: [], keepalive: { number: 1 } });
  });

  test('the namespace has a limit of its own; what it refuses does not count against the client', async () => {
    const bench = new Bench({ operationsPerSecond: 30, operationsPerSecondPerClient: 20 });
    const [a, b] = [bench.client(), bench.client()];
    a.ask(...Array.from({ length: 25 }, () => acquire));
    b.ask(...Array.from({ length: 15 }, () => acquire));
    const messages = (client: Client): string[] =>
      client.answers.map(({ body }) => (body.type === 'rejected' ? body.message : ''));
    expect(messages(a)).toHaveLength(5);
    expect(messages(a)[0]).toContain('this client');
    expect(messages(b)).toHaveLength(5);
    expect(messages(b)[0]).toContain('this namespace');
    bench.config = namespaceConfig({ operationsPerSecond: 1_000, operationsPerSecondPerClient: 20 });
    await bench.runtime.pass(15);
    b.ask(...Array.from({ length: 10 }, () => acquire));
    expect(messages(b)).toHaveLength(5);
  });

  test('a connection that is made anew begins with a whole second’s worth', () => {
    const bench = new Bench({ operationsPerSecondPerClient: 50 });
    bench.client().stream.close();
    const client = bench.client();
    client.ask(...Array.from({ length: 50 }, () => acquire));
    expect(client.answers).toEqual([]);
  });
});

describe('what is passed on', () => {
  test('the identity is added, and the secret leaves as its hash alone', () => {
    const bench = new Bench();
    const client = bench.client();
    client.ask(
      { type: 'open', client: 'c', ttlMs: 5_000, maxHoldMs: 0, secretHash: 'ab'.repeat(32) },
      { type: 'attachWithSecret', session: 4, attach: 2, secret: 'quiet' },
    );
    expect(bench.relayed[0]?.groups[0]?.requests.map(({ body }) => body)).toEqual([
      {
        type: 'openSession',
        client: 'c',
        identity: IDENTITY,
        ttlMs: 5_000,
        maxHoldMs: 0,
        secretHash: 'ab'.repeat(32),
      },
      { type: 'attach', session: 4, attach: 2, secretHash: sha256('quiet') },
    ]);
    expect(JSON.stringify(bench.relayed)).not.toContain('quiet');
  });

  test('malformed requests are refused with the field; the good ones of the frame go on', () => {
    const bench = new Bench();
    const client = bench.client();
    const [bad, good] = client.ask({ ...acquire, name: '' }, acquire);
    expect(client.answers).toMatchObject([{ id: bad, body: { code: 'INVALID', field: 'name' } }]);
    expect(bench.relayed[0]?.groups[0]?.requests.map(({ id }) => id)).toEqual([good]);
  });

  test('without a leader everything is refused as UNAVAILABLE, and the frame says that nobody leads', () => {
    const bench = new Bench();
    const client = bench.client();
    bench.frontEnd.setLeader(null);
    client.ask(acquire, ...GIVES_BACK);
    client.stream.send({ format: 1, requests: [], keepalive: { number: 1, sessions: [] } });
    expect(client.answers.map(({ body }) => body)).toMatchObject(
      [acquire, ...GIVES_BACK].map(() => ({ type: 'rejected', code: 'UNAVAILABLE' })),
    );
    expect(client.frames.every(({ leading }) => !leading)).toBe(true);
    expect(bench.relayed).toEqual([]);
  });

  test('the leader’s frames reach their client with their position, keepalive answers one a frame', () => {
    const bench = new Bench();
    const [first, second] = [bench.client(), bench.client()];
    const kept = (number: number): KeepaliveAnswer => ({ number, sessions: [] });
    const position = { ...POSITION, index: 12 };
    bench.tell(2, { answers: [{ id: 5, body: { type: 'done' } }], keepalives: [kept(1), kept(2)] }, position);
    bench.tell(77, { answers: [{ id: 5, body: { type: 'done' } }] }, position);
    expect(first.frames).toEqual([]);
    expect(second.frames).toEqual([
      {
        position,
        leading: true,
        answers: [{ id: 5, body: { type: 'done' } }],
        notices: [],
        keepalive: kept(1),
      },
      { position, leading: true, answers: [], notices: [], keepalive: kept(2) },
    ]);
  });
});

describe('streams come and go', () => {
  test('the leader is told once of a client that leaves, and hears nothing more of it', () => {
    const bench = new Bench();
    const client = bench.client();
    expect(bench.frontEnd.clients).toBe(1);
    client.stream.close();
    client.stream.close();
    client.ask(acquire);
    expect(bench.relayed).toEqual([{ format: 1, groups: [], closed: [1] }]);
    expect(bench.frontEnd.clients).toBe(0);
    bench.tell(1, { answers: [{ id: 5, body: { type: 'done' } }] });
    expect(client.frames).toEqual([]);
  });

  test('when the front end closes, every client is told', () => {
    const bench = new Bench();
    const clients = [bench.client(), bench.client()];
    bench.frontEnd.close();
    expect(clients.map(({ isClosed }) => isClosed)).toEqual([true, true]);
    expect(bench.frontEnd.clients).toBe(0);
  });

  test('a client whose own code throws loses its stream; the leader and the others notice nothing', () => {
    const bench = new Bench();
    const broken = bench.client(() => {
      throw new Error('disk full');
    });
    const sound = bench.client();
    const answers = [{ id: 5, body: { type: 'done' } as const }];
    const group = { answers, notices: [], keepalives: [] };
    bench.frontEnd.fromLeader({
      position: POSITION,
      groups: [
        { client: 1, ...group },
        { client: 2, ...group },
      ],
    });
    expect(sound.answers).toEqual(answers);
    expect(broken.isClosed).toBe(true);
    expect(bench.frontEnd.clients).toBe(1);
    expect(bench.relayed).toEqual([{ format: 1, groups: [], closed: [1] }]);
    expect(bench.runtime.logged).toHaveLength(1);
  });
});
