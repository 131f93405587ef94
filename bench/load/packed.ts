/**
 * Streams at their limit: each has `packed` operations under way, and every answer makes the next request. Acquire and
 * release of distinct names are one operation each.
 */
import type { ClientRequest, ClientStream, ServerFrame } from '../../src/api/wire.ts';
import { acquireBody, type Connect, closeBody, openBody } from '../client.ts';
import type { Summary } from '../measure.ts';

const NAMES_PER_STREAM = 5_000;

export interface SaturateOptions {
  /** One stream for each. */
  readonly streams: readonly Connect[];
  /** Operations under way in each stream, in as few frames as answers come in. */
  readonly packed: number;
  readonly seconds: number;
  /** Not counted. */
  readonly warmUpSeconds: number;
}

export async function saturate({
  streams,
  packed,
  seconds,
  warmUpSeconds,
}: SaturateOptions): Promise<Summary> {
  let operations = 0;
  let isOver = false;
  const load = {
    packed,
    count: (done: number): void => {
      operations += done;
    },
    isOver: (): boolean => isOver,
  };
  const ended = streams.map((connect) => keepBusy(connect, load));
  await new Promise((resolve) => setTimeout(resolve, warmUpSeconds * 1000));
  operations = 0;
  const startedMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const elapsedSeconds = (performance.now() - startedMs) / 1000;
  const counted = operations;
  isOver = true;
  await Promise.all(ended);
  return { operations: counted, perSecond: counted / elapsedSeconds, p50Ms: 0, p99Ms: 0, maxMs: 0 };
}

interface Load {
  readonly packed: number;
  readonly count: (operations: number) => void;
  readonly isOver: () => boolean;
}

/** Resolves when everything it has asked for is answered, and its session closed. */
function keepBusy(connect: Connect, { packed, count, isOver }: Load): Promise<void> {
  return new Promise((resolve, reject) => {
    let session = 0;
    let next = 0;
    let underWay = 1;
    let closing = -1;
    const names = new Map<number, string>();
    const acquire = (): ClientRequest => {
      const id = ++next;
      const name = `merchant-${session}-${id % NAMES_PER_STREAM}`;
      names.set(id, name);
      return { id, body: acquireBody(session, `k${id}`, name, 0, []) };
    };
    const release = (acquired: number, token: number): ClientRequest => {
      const name = names.get(acquired) as string;
      names.delete(acquired);
      const acks = [`k${acquired}`];
      return { id: ++next, body: { type: 'release', session, attach: 1, name, token, key: '', acks } };
    };
    const onFrame = ({ answers }: ServerFrame): void => {
      const requests: ClientRequest[] = [];
      underWay -= answers.length;
      if (isOver() && answers.some(({ id }) => id === closing)) {
        resolve();
        stream.close();
        return;
      }
      for (const { id, body } of answers) {
        if (body.type === 'opened') {
          session = body.session;
          for (let i = 0; i < packed; i++) requests.push(acquire());
        } else if (body.type === 'granted') requests.push(release(id, body.token));
        else if (body.type === 'done') requests.push(acquire());
        else reject(new Error(JSON.stringify(body)));
      }
      if (next > 0) count(answers.length);
      if (!isOver()) {
        underWay += requests.length;
        if (requests.length > 0) stream.send({ format: 1, requests });
      } else if (underWay === 0) {
        closing = ++next;
        underWay = 1;
        stream.send({ format: 1, requests: [{ id: closing, body: closeBody(session) }] });
      }
    };
    const stream: ClientStream = connect({
      onFrame,
      onClose: () => reject(new Error('a stream to the front end has ended')),
    });
    stream.send({ format: 1, requests: [{ id: 0, body: openBody() }] });
  });
}
