/**
 * The event stream of a session: NDJSON, never silent for a second, so that a reader can tell "nothing happened" from
 * "the connection is dead". A reader that does not read is cut off rather than buffered without bound.
 */
import type { ServerResponse } from 'node:http';
import type { Timer } from '../../platform/runtime.ts';
import type { EventSubscription, StreamLine } from '../service.ts';
import { onHangUp } from './hang-up.ts';
import type { RawCall } from './route.ts';
import type { ApiDependencies } from './routes/dependencies.ts';
import { lineBody } from './views.ts';

/** Below a second, so that a late timer still keeps the promise of a line every second. */
const ALIVE_EVERY_MS = 900;
/** What may wait for a slow reader. */
export const STREAM_BUFFER_BYTES_MAX = 1024 * 1024;

/** Throws what `openEvents` throws, before anything was written; afterwards the stream runs until one side ends it. */
export function streamEvents(sessionId: string, call: RawCall, dependencies: ApiDependencies): void {
  const { request, response } = call;
  const { service, runtime, metrics, isStopping } = dependencies;
  const lines = new LineWriter(response);
  let subscription: EventSubscription | undefined;
  let nextBeat: Timer | undefined;
  let ended = false;

  function end(): void {
    if (ended) return;
    ended = true;
    nextBeat?.cancel();
    // When this process stops, sessions go on in the next one: its closing of streams is no hang-up (rule A3).
    if (!isStopping()) subscription?.close();
    metrics.http.streamsChanged(-1);
  }

  function beat(): void {
    if (ended) return;
    lines.write({ event: 'alive' });
    nextBeat = runtime.timers.after(ALIVE_EVERY_MS, beat);
  }

  subscription = service.openEvents(sessionId, (line) => {
    lines.write(line);
    if (line.event === 'sessionLost') response.end();
  });
  metrics.http.streamsChanged(1);
  onHangUp(request, response, end);
  response.once('finish', end);
  beat();
}

class LineWriter {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  write(line: StreamLine): void {
    const response = this.#response;
    if (response.writableEnded || response.destroyed) return;
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    }
    response.write(`${JSON.stringify(lineBody(line))}\n`);
    if (response.writableLength > STREAM_BUFFER_BYTES_MAX) response.destroy();
  }
}
