/**
 * A lock group of one replica to load, and clients that speak to its front end with the protocol's frames, as a sidecar does.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NamespaceConfig } from '../src/api/config.ts';
import type { Acquire } from '../src/api/entry.ts';
import { bucketOf } from '../src/api/names.ts';
import type { AnswerBody, ClientRequestBody, ClientStream, ServerFrame } from '../src/api/wire.ts';
import { sha256 } from '../src/core/index.ts';
import { openEmbeddedLog } from '../src/log/embedded/embedded-log.ts';
import type { LockLog } from '../src/log/port.ts';
import { createSystemRuntime } from '../src/platform/system-runtime.ts';
import { Replica } from '../src/server/replica.ts';

const runtime = createSystemRuntime({ logLevel: 'warn' });

/** Limits out of the way: what is measured is the service, not its brakes. */
const CONFIG: NamespaceConfig = {
  namespace: 'bench',
  name: 'bench',
  safetyClass: 'Efficiency',
  ttlMs: 60_000,
  ttlMsMin: 5_000,
  ttlMsMax: 60_000,
  lockDelayMs: 0,
  maxHoldMs: 3_600_000,
  modes: ['exclusive'],
  maxWaitersPerName: 10_000,
  maxWaitMs: 600_000,
  sessions: 20_000,
  heldLocks: 1_000_000,
  waiters: 1_000_000,
  operationsPerSecond: 1_000_000_000,
  locksPerClient: 100_000,
  operationsPerSecondPerClient: 1_000_000_000,
  semaphores: [],
  consumers: null,
};

export async function withReplica<T>(log: LockLog, use: (replica: Replica) => Promise<T>): Promise<T> {
  const onStopped = (reason: object): never => {
    throw new Error(`the replica stopped: ${JSON.stringify(reason)}`);
  };
  const replica = await Replica.start({ runtime, log, serverId: 'bench', config: CONFIG, onStopped });
  try {
    return await use(replica);
  } finally {
    await replica.stop();
  }
}

export async function withEmbeddedLog<T>(use: (log: LockLog) => Promise<T>): Promise<T> {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
  try {
    return await use(await openEmbeddedLog({ ...runtime, directory }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

export class Client {
  session = 0;
  readonly #stream: ClientStream;
  readonly #answers = new Map<number, (body: AnswerBody) => void>();
  readonly #grants = new Map<string, (token: number) => void>();
  /** Keys whose outcome has arrived, to be acknowledged with the next command (rule C5). */
  readonly #settled: string[] = [];
  #lastId = 0;

  private constructor(replica: Replica) {
    this.#stream = replica.frontEnd.connect(
      { account: 'bench/bench', podUid: '' },
      { onFrame: (frame) => this.#receive(frame), onClose: () => undefined },
    );
  }

  static async open(replica: Replica): Promise<Client> {
    const client = new Client(replica);
    const answer = await client.ask({
      type: 'open',
      client: 'bench',
      ttlMs: 60_000,
      maxHoldMs: 0,
      secretHash: sha256('bench'),
    });
    if (answer.type !== 'opened') throw new Error(JSON.stringify(answer));
    client.session = answer.session;
    return client;
  }

  /** Resolves with the token, after waiting if need be. */
  async acquire(name: string, waitMs = 0): Promise<number> {
    const body = acquireBody(this.session, `k${++this.#lastId}`, name, waitMs, this.#settled.splice(0));
    const granted = new Promise<number>((resolve) => this.#grants.set(body.key, resolve));
    const answer = await this.ask(body);
    this.#settled.push(body.key);
    if (answer.type === 'queued') return granted;
    this.#grants.delete(body.key);
    if (answer.type !== 'granted') throw new Error(JSON.stringify(answer));
    return answer.token;
  }

  async release(name: string, token: number): Promise<void> {
    const acks = this.#settled.splice(0);
    const answer = await this.ask({
      type: 'release',
      session: this.session,
      attach: 1,
      name,
      token,
      key: '',
      acks,
    });
    if (answer.type !== 'done') throw new Error(JSON.stringify(answer));
  }

  ask(body: ClientRequestBody): Promise<AnswerBody> {
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.#stream.send({ format: 1, requests: [{ id, body }] });
    });
  }

  #receive({ answers, notices }: ServerFrame): void {
    for (const { id, body } of answers) {
      this.#answers.get(id)?.(body);
      this.#answers.delete(id);
    }
    for (const { event } of notices) {
      if (event.type !== 'granted') continue;
      this.#grants.get(event.key)?.(event.token);
      this.#grants.delete(event.key);
    }
  }
}

export function acquireBody(
  session: number,
  key: string,
  name: string,
  waitMs: number,
  acks: readonly string[],
): Acquire {
  return {
    type: 'acquire',
    session,
    attach: 1,
    key,
    name,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    owner: 'bench',
    purpose: '',
    waitMs,
    bucket: bucketOf(name),
    mapVersion: 1,
    acks,
  };
}
