/**
 * What is measured. Each scenario answers one question a user would ask; the bare commit of the same run is the yardstick.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ClientRequest, ClientStream, ServerFrame } from '../src/api/wire.ts';
import { sha256 } from '../src/core/index.ts';
import { MemoryLog } from '../src/log/memory-log.ts';
import { MemoryStore } from '../src/log/memory-store.ts';
import type { Replica } from '../src/server/replica.ts';
import { acquireBody, Client, withEmbeddedLog, withReplica } from './group.ts';
import { closedLoop, openLoop, type Summary, summarise } from './measure.ts';

const ROW_BYTES = 200;

/** The physical limit: one synced commit of one row, nothing else. */
export async function bareCommit(seconds: number): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
  const database = new DatabaseSync(join(folder, 'bare.db'));
  try {
    database.exec(
      'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE log (i INTEGER PRIMARY KEY, bytes BLOB)',
    );
    const insert = database.prepare('INSERT INTO log (bytes) VALUES (?)');
    const row = new Uint8Array(ROW_BYTES);
    return await closedLoop({ workers: 1, seconds }, async () => insert.run(row));
  } finally {
    database.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Distinct names through the lock protocol on the embedded log, at a fixed rate: acquire and release are one operation each. */
export function uncontended(perSecond: number, seconds: number): Promise<Summary> {
  return withEmbeddedLog((log) =>
    withReplica(log, async (replica) => {
      const clients = await Promise.all(Array.from({ length: 20 }, () => Client.open(replica)));
      // Releases follow their acquires, so only acquires have a planned start; both count as operations.
      const held: Promise<void>[] = [];
      const acquire = async (turn: number): Promise<void> => {
        const client = clients[turn % clients.length] as Client;
        const token = await client.acquire(`n-${turn}`);
        held.push(client.release(`n-${turn}`, token));
      };
      const acquires = await openLoop({ perSecond: perSecond / 2, seconds }, acquire);
      await Promise.all(held);
      return { ...acquires, operations: 2 * acquires.operations, perSecond: 2 * acquires.perSecond };
    }),
  );
}

export interface HandOvers extends Summary {
  /** p99 of the wait over its mean: 1 = perfectly fair. */
  readonly unfairness: number;
}

/** Workers that queue for one name: an operation is one hand-over, its latency the wait. */
export function oneName(workers: number, seconds: number): Promise<HandOvers> {
  return withEmbeddedLog((log) =>
    withReplica(log, async (replica) => {
      const clients = await Promise.all(Array.from({ length: workers }, () => Client.open(replica)));
      const waitsMs: number[] = [];
      const startedMs = performance.now();
      const summary = await closedLoop({ workers, seconds }, async (worker) => {
        const client = clients[worker] as Client;
        const askedMs = performance.now();
        const token = await client.acquire('the-one', 600_000);
        // Until all have queued once the queue is short; what is asked for is the steady state.
        if (performance.now() - startedMs > 1_000) waitsMs.push(performance.now() - askedMs);
        await client.release('the-one', token);
      });
      const waits = summarise(waitsMs, seconds);
      const meanMs = waitsMs.reduce((sum, ms) => sum + ms, 0) / Math.max(1, waitsMs.length);
      return { ...summary, p50Ms: waits.p50Ms, p99Ms: waits.p99Ms, unfairness: waits.p99Ms / meanMs };
    }),
  );
}

/** The leader's loop alone: packed frames from 20 streams of 100 operations, on the memory log, load generator included. */
export async function leaderLoop(seconds: number): Promise<Summary> {
  const log = new MemoryLog(new MemoryStore('bench'));
  return withReplica(log, async (replica) => {
    let operations = 0;
    let isOver = false;
    const startedMs = performance.now();
    const streams = Array.from({ length: 20 }, (_, stream) =>
      packedStream(replica, stream, {
        count: (done) => {
          operations += done;
        },
        isOver: () => isOver,
      }),
    );
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    isOver = true;
    const elapsedSeconds = (performance.now() - startedMs) / 1000;
    const counted = operations;
    await Promise.all(streams);
    return { operations: counted, perSecond: counted / elapsedSeconds, p50Ms: 0, p99Ms: 0, maxMs: 0 };
  });
}

const NAMES_PER_STREAM = 5_000;
const PACKED = 100;

function packedStream(
  replica: Replica,
  number: number,
  { count, isOver }: { readonly count: (operations: number) => void; readonly isOver: () => boolean },
): Promise<void> {
  return new Promise((resolve) => {
    let session = 0;
    let next = 0;
    const names = new Map<number, string>();
    const acquire = (): ClientRequest => {
      const id = ++next;
      const name = `merchant-${number}-${id % NAMES_PER_STREAM}`;
      names.set(id, name);
      return { id, body: acquireBody(session, `k${id}`, name, 0, []) };
    };
    const release = (acquired: number, token: number): ClientRequest => {
      const name = names.get(acquired) as string;
      names.delete(acquired);
      const acks = [`k${acquired}`];
      return { id: ++next, body: { type: 'release', session, attach: 1, name, token, key: '', acks } };
    };
    const answer = ({ answers }: ServerFrame): void => {
      const requests: ClientRequest[] = [];
      for (const { id, body } of answers) {
        if (body.type === 'opened') {
          session = body.session;
          for (let i = 0; i < PACKED; i++) requests.push(acquire());
        } else if (body.type === 'granted') requests.push(release(id, body.token));
        else if (body.type === 'done') requests.push(acquire());
        else throw new Error(JSON.stringify(body));
      }
      if (session !== 0) count(answers.length);
      if (isOver()) resolve();
      else stream.send({ format: 1, requests });
    };
    const identity = { account: 'bench/bench', podUid: '' };
    const stream: ClientStream = replica.frontEnd.connect(identity, {
      onFrame: answer,
      onClose: () => undefined,
    });
    const open = {
      type: 'open',
      client: 'bench',
      ttlMs: 60_000,
      maxHoldMs: 0,
      secretHash: sha256('bench'),
    } as const;
    stream.send({ format: 1, requests: [{ id: 0, body: open }] });
  });
}
