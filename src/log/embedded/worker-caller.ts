/** The main thread's end of an embedded log: sends steps to the worker thread and settles their promises. */
import { Worker } from 'node:worker_threads';
import { LogClosedError, LogUnavailableError } from '../errors.ts';
import type { StoreArguments, StoreCaller, StoreMethod, StoreReply } from '../store.ts';
import { decodeError, type WorkerMessage, type WorkerOptions } from './messages.ts';

/** Requests under way at once: one append, and as many readers as anybody has use for. */
const REQUESTS_MAX = 1_024;

/** Runs as source and as what tsc makes of it. */
const WORKER_FILE = import.meta.url.endsWith('.ts')
  ? new URL('./worker.ts', import.meta.url)
  : new URL('./worker.js', import.meta.url);

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

type Unnumbered<M extends StoreMethod> =
  | { readonly method: M; readonly args: StoreArguments<M> }
  | { readonly method: 'close' };

export class WorkerCaller implements StoreCaller {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #opened: Pending;
  /** Resolves with the lineage. */
  readonly opened: Promise<string>;
  readonly #exited: Promise<void>;
  #nextId = 1;
  #failure: Error | undefined;

  constructor(options: WorkerOptions) {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    this.opened = promise;
    this.#opened = { resolve, reject };
    this.#worker = new Worker(WORKER_FILE, { workerData: options, name: 'leasehold-log' });
    this.#worker.on('message', (message: WorkerMessage) => this.#receive(message));
    this.#worker.on('error', (error) => this.#fail("the log's worker thread failed", error));
    this.#worker.on('messageerror', (error) => {
      this.#fail("a message of the log's worker thread was lost", error);
      void this.#worker.terminate();
    });
    this.#exited = new Promise((exited) => {
      this.#worker.on('exit', (code) => {
        this.#fail(`the log's worker thread ended with code ${code}`);
        exited();
      });
    });
  }

  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    return new Promise((resolve, reject) => {
      const moved: ArrayBuffer[] = [];
      const packed = args.map((value) => pack(value, moved)) as StoreArguments<M>;
      this.#send({ method, args: packed }, moved, { resolve, reject });
    });
  }

  /** What was asked before is answered first. */
  async close(): Promise<void> {
    if (this.#failure === undefined) {
      await new Promise<void>((resolve, reject) => {
        this.#send({ method: 'close' }, [], { resolve: resolve as () => void, reject });
      });
    }
    await this.#exited;
  }

  #send<M extends StoreMethod>(request: Unnumbered<M>, moved: ArrayBuffer[], pending: Pending): void {
    if (this.#failure !== undefined) {
      pending.reject(this.#failure);
      return;
    }
    // A log that is busy can be closed all the same: nothing else would ever end its thread and free its folder.
    if (this.#pending.size >= REQUESTS_MAX && request.method !== 'close') {
      pending.reject(new LogUnavailableError(`${REQUESTS_MAX} requests to the log are under way`));
      return;
    }
    const id = this.#nextId;
    this.#nextId += 1;
    // First: it throws when something cannot be sent.
    this.#worker.postMessage({ ...request, id }, moved);
    this.#pending.set(id, pending);
  }

  #receive(message: WorkerMessage): void {
    switch (message.type) {
      case 'opened':
        this.#opened.resolve(message.lineage as never);
        return;
      case 'done':
        this.#take(message.id)?.resolve(message.value as never);
        return;
      case 'failed':
        this.#take(message.id)?.reject(decodeError(message.error));
        return;
    }
  }

  /** Id 0 is the opening itself. */
  #take(id: number): Pending | undefined {
    if (id === 0) return this.#opened;
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  /** Nothing is answered any more: what is under way has an unknown outcome for good, as far as this handle goes. */
  #fail(what: string, cause?: unknown): void {
    this.#failure ??= new LogClosedError(what, cause === undefined ? {} : { cause });
    this.#opened.reject(this.#failure);
    for (const pending of this.#pending.values()) pending.reject(this.#failure);
    this.#pending.clear();
  }
}

/**
 * Bytes travel as an exact copy that is moved: the caller keeps its own (it may have to send them again, rule L2), and a view into a
 * larger buffer does not drag the whole of it along.
 */
function pack(value: unknown, moved: ArrayBuffer[]): unknown {
  if (value instanceof Uint8Array) {
    const copy = new Uint8Array(value);
    moved.push(copy.buffer);
    return copy;
  }
  if (typeof value === 'object' && value !== null && 'bytes' in value && value.bytes instanceof Uint8Array) {
    return { ...value, bytes: pack(value.bytes, moved) };
  }
  return value;
}
