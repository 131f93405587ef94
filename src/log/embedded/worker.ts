/**
 * The thread that owns an embedded log: SQLite's calls are synchronous and wait for the disk, which the main thread must not.
 * Runs as this .ts file or as the .js made from it.
 */
import { ok as assert } from 'node:assert';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { LogClosedError } from '../errors.ts';
import { invoke, type LogStore, type StoreArguments, type StoreMethod, type StoreReply } from '../store.ts';
import { makeDirectory, openForReading, openForWriting } from './database.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { encodeError, type WorkerMessage, type WorkerOptions, type WorkerRequest } from './messages.ts';
import { SqliteReader } from './sqlite-reader.ts';
import { SqliteStore } from './sqlite-store.ts';

interface OpenLog {
  readonly lineage: string;
  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): StoreReply<M>;
  close(): void;
}

function open(options: WorkerOptions): OpenLog {
  switch (options.mode) {
    case 'write':
      return openWriter(options);
    case 'readOnly':
      return openReader(options);
  }
}

function openWriter(options: WorkerOptions): OpenLog {
  makeDirectory(options.directory);
  const lock: DirectoryLock = lockDirectory(options.directory);
  try {
    const database = openForWriting(options.directory, options.lineage, options);
    try {
      const store: LogStore & SqliteStore = new SqliteStore(database, options);
      store.keepSealKey(options.sealKey);
      return {
        lineage: store.lineage,
        call: (method, args) => invoke(store, method, args),
        close: () => {
          store.close();
          lock.release();
        },
      };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

function openReader(options: WorkerOptions): OpenLog {
  const database = openForReading(options.directory);
  try {
    const reader = new SqliteReader(database);
    return {
      lineage: reader.lineage,
      call: (method, args) => {
        assert(method in reader, `a read-only log does not ${method}`);
        return Reflect.apply(reader[method as keyof typeof reader] as never, reader, args);
      },
      close: () => reader.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Buffers of a reply that may move: they were made for it. */
function buffersOf(value: StoreReply<StoreMethod>): ArrayBuffer[] {
  if (value instanceof Uint8Array) return value.buffer instanceof ArrayBuffer ? [value.buffer] : [];
  if (!Array.isArray(value)) return [];
  return value.flatMap((item) =>
    'bytes' in item && item.bytes instanceof Uint8Array ? buffersOf(item.bytes) : [],
  );
}

function serve(port: MessagePort, log: OpenLog, directory: string): void {
  let closed = false;
  const perform = (request: WorkerRequest): StoreReply<StoreMethod> => {
    if (closed) throw new LogClosedError('this log is closed');
    if (request.method !== 'close') return log.call(request.method, request.args);
    closed = true;
    return log.close();
  };
  port.on('message', (request: WorkerRequest) => {
    try {
      const value = perform(request);
      port.postMessage({ type: 'done', id: request.id, value } satisfies WorkerMessage, buffersOf(value));
    } catch (error) {
      const failed: WorkerMessage = { type: 'failed', id: request.id, error: encodeError(error, directory) };
      port.postMessage(failed);
    }
    if (closed) port.close();
  });
  port.postMessage({ type: 'opened', lineage: log.lineage } satisfies WorkerMessage);
}

const options = workerData as WorkerOptions;
assert(parentPort !== null, 'this file is started as a worker thread');
const port = parentPort;
try {
  serve(port, open(options), options.directory);
} catch (error) {
  port.postMessage({
    type: 'failed',
    id: 0,
    error: encodeError(error, options.directory),
  } satisfies WorkerMessage);
  port.close();
}
