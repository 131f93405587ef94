/**
 * Cases I01 and I02 through front end, leader and log: a million names, each used once, leave nothing behind in any of them.
 * Its own file, since it measures the memory of its process.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { FORMAT_VERSION } from '../../src/api/limits.ts';
import type { AnswerBody, ClientRequestBody, ClientStream } from '../../src/api/wire.ts';
import { MemoryLog } from '../../src/log/memory-log.ts';
import { MemoryStore } from '../../src/log/memory-store.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { Replica } from '../../src/server/member/replica.ts';
import { acquireCommand, namespaceConfig } from '../support/core.ts';

const NAMES = 1_000_000;
/** In one frame: under the 256 outcomes that a session may leave unacknowledged, times its sessions. */
const BATCH = 2_000;
const SESSIONS = 20;
const TIMEOUT_MS = 180_000;
const SNAPSHOT_DUE_BYTES = 4 * 1024 * 1024;
/** Half of the names pass before the first measurement, so that compiled code and grown buffers are in both. */
const LEFT_OVER_BYTES_MAX = 16 * 1024 * 1024;

/** A client that sends whole frames and waits for all answers of one. */
class Frames {
  readonly #stream: ClientStream;
  #answers: AnswerBody[] = [];
  #wanted = 0;
  #done: (answers: readonly AnswerBody[]) => void = () => undefined;
  #lastId = 0;

  constructor(replica: Replica) {
    this.#stream = replica.frontEnd.connect(
      { account: 'dev/developer', podUid: '' },
      {
        onFrame: ({ answers }) => {
          for (const { body } of answers) this.#answers.push(body);
          if (this.#answers.length === this.#wanted) this.#done(this.#answers);
        },
        onClose: () => undefined,
      },
    );
  }

  send(bodies: readonly ClientRequestBody[]): Promise<readonly AnswerBody[]> {
    this.#answers = [];
    this.#wanted = bodies.length;
    const requests = bodies.map((body) => ({ id: ++this.#lastId, body }));
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#stream.send({ format: FORMAT_VERSION, requests });
    });
  }
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

/** Takes, reads once in a while, and gives back the names from `from` to `to`. */
async function useNames(
  frames: Frames,
  sessions: readonly number[],
  from: number,
  to: number,
): Promise<void> {
  for (let first = from; first < to; first += BATCH) {
    const uses = Array.from({ length: BATCH }, (_, i) => ({
      session: sessions[i % sessions.length] as number,
      name: `merchant-${first + i}`,
      key: `k${first + i}`,
    }));
    const acquired = await frames.send(
      uses.map(({ session, name, key }) => acquireCommand({ session, name, key, owner: 'job' })),
    );
    const released = await frames.send([
      ...uses.map(({ session, name, key }, i) => {
        const answer = acquired[i];
        const token = answer?.type === 'granted' ? answer.token : 0;
        return { type: 'release', session, attach: 1, name, token, key: '', acks: [key] } as const;
      }),
      { type: 'getLock', name: `never-used-${first}` },
    ]);
    expect(released.filter(({ type }) => type === 'done')).toHaveLength(BATCH);
  }
}

test('cases I01, I02: a million names through front end, leader and log', {
  timeout: TIMEOUT_MS,
}, async () => {
  const runtime = createSystemRuntime({ logLevel: 'error' });
  const log = new MemoryLog(new MemoryStore('lineage'));
  const stopped: unknown[] = [];
  const replica = await Replica.start({
    runtime,
    log,
    serverId: 'test',
    config: namespaceConfig({ operationsPerSecond: 1e6, operationsPerSecondPerClient: 1e6 }),
    snapshotDueBytes: SNAPSHOT_DUE_BYTES,
    onStopped: (reason) => stopped.push(reason),
  });
  const frames = new Frames(replica);
  const opened = await frames.send(
    Array.from({ length: SESSIONS }, () => ({
      type: 'open' as const,
      client: 'test',
      ttlMs: 60_000,
      maxHoldMs: 0,
      secretHash: 'a5'.repeat(32),
    })),
  );
  const sessions = opened.flatMap((answer) => (answer.type === 'opened' ? [answer.session] : []));
  const { lastToken } = replica.status();
  await useNames(frames, sessions, 0, NAMES / 2);
  const half = heapBytes();
  await useNames(frames, sessions, NAMES / 2, NAMES);
  const whole = heapBytes();
  expect(replica.status()).toMatchObject({ held: 0, waiting: 0, names: 0, lastToken: lastToken + NAMES });
  expect(whole - half).toBeLessThan(LEFT_OVER_BYTES_MAX);
  // The log is trimmed behind its snapshots.
  expect(await log.retainedBytes()).toBeLessThan(4 * SNAPSHOT_DUE_BYTES);
  expect(stopped).toEqual([]);
  await replica.stop();
});
