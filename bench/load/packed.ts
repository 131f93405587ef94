/**
 * Streams at their limit: each has `packed` operations under way, and every answer makes the next request. Acquire and
 * release of distinct names are one operation each.
 */
import type { Answer, ClientRequest, ClientRequestBody, ClientStream } from '../../src/api/wire.ts';
import { acquireBody, type Connect, closeBody, openBody } from '../client.ts';
import type { Summary } from '../measure.ts';
import { type Processes, watchProcessors } from '../processor-time.ts';

const NAMES_PER_STREAM = 5_000;

export interface SaturateOptions {
  /** One stream for each. */
  readonly streams: readonly Connect[];
  /** Operations under way in each stream, in as few frames as answers come in. */
  readonly packed: number;
  readonly seconds: number;
  /** Not counted. */
  readonly warmUpSeconds: number;
  /** Whose processor time is measured, beside the generator's own. */
  readonly watched?: Processes;
}

export interface Saturated extends Summary {
  /** Used meanwhile by each process watched, and by the generator. */
  readonly processorMs: Readonly<Record<string, number>>;
}

export async function saturate(options: SaturateOptions): Promise<Saturated> {
  const streams = options.streams.map((connect) => new BusyStream(connect));
  const failed = Promise.race(streams.map((stream) => stream.failed));
  await Promise.race([failed, Promise.all(streams.map((stream) => stream.opened))]);
  const answered = (): number => streams.reduce((sum, stream) => sum + stream.answered, 0);
  for (const stream of streams) stream.start(options.packed);
  await Promise.race([failed, pause(options.warmUpSeconds)]);
  const before = answered();
  const used = watchProcessors({ ...options.watched, generator: process.pid });
  const startedMs = performance.now();
  await Promise.race([failed, pause(options.seconds)]);
  const operations = answered() - before;
  const elapsedSeconds = (performance.now() - startedMs) / 1000;
  const processorMs = used();
  await Promise.race([failed, Promise.all(streams.map((stream) => stream.close()))]);
  return { operations, perSecond: operations / elapsedSeconds, p50Ms: 0, p99Ms: 0, maxMs: 0, processorMs };
}

function pause(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

class BusyStream {
  answered = 0;
  readonly opened: Promise<void>;
  /** Rejects when anything goes otherwise than planned. */
  readonly failed: Promise<never>;
  readonly #stream: ClientStream;
  readonly #names = new Map<number, string>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  #session = 0;
  #lastId = 0;
  #underWay = 0;
  #isClosing = false;

  constructor(connect: Connect) {
    this.opened = this.#opened.promise;
    this.failed = this.#failed.promise;
    this.#stream = connect({
      onFrame: ({ answers }) => this.#take(answers),
      onClose: () => this.#failed.reject(new Error('a stream to the front end has ended')),
    });
    this.#send([this.#request(openBody())]);
  }

  start(packed: number): void {
    this.#send(Array.from({ length: packed }, () => this.#acquire()));
  }

  /** Resolves when everything that was asked for is answered, and the session closed. */
  close(): Promise<void> {
    this.#isClosing = true;
    return this.#closed.promise;
  }

  #take(answers: readonly Answer[]): void {
    const requests: ClientRequest[] = [];
    this.#underWay -= answers.length;
    for (const { id, body } of answers) {
      const name = this.#names.get(id);
      this.#names.delete(id);
      if (body.type === 'opened') {
        this.#session = body.session;
        this.#opened.resolve();
      } else if (body.type === 'granted' && name !== undefined) {
        this.answered++;
        if (!this.#isClosing) requests.push(this.#release(name, body.token, id));
      } else if (body.type === 'done') {
        this.answered++;
        if (!this.#isClosing) requests.push(this.#acquire());
      } else if (body.type !== 'refused' || !this.#isClosing) {
        this.#failed.reject(new Error(JSON.stringify(body)));
      }
    }
    if (requests.length > 0) this.#send(requests);
    else if (this.#isClosing && this.#underWay === 0) this.#end();
  }

  /** First gives everything back, then says that it is done. */
  #end(): void {
    if (this.#session === 0) {
      this.#closed.resolve();
      return;
    }
    this.#send([this.#request(closeBody(this.#session))]);
    this.#session = 0;
  }

  #acquire(): ClientRequest {
    const name = `merchant-${this.#session}-${(this.#lastId + 1) % NAMES_PER_STREAM}`;
    const request = this.#request(acquireBody(this.#session, `k${this.#lastId + 1}`, name, 0, []));
    this.#names.set(request.id, name);
    return request;
  }

  #release(name: string, token: number, acquired: number): ClientRequest {
    const session = this.#session;
    const acks = [`k${acquired}`];
    return this.#request({ type: 'release', session, attach: 1, name, token, key: '', acks });
  }

  #request(body: ClientRequestBody): ClientRequest {
    return { id: ++this.#lastId, body };
  }

  #send(requests: readonly ClientRequest[]): void {
    this.#underWay += requests.length;
    this.#stream.send({ format: 1, requests });
  }
}
