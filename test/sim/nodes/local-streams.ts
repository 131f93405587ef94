/** The event streams of applications, as `GET /v1/sessions/{id}/events` carries them: lines arrive in order, or not at all. */
import { LeaseholdError } from '../../../src/api/errors.ts';
import type { EventSubscription, StreamLine } from '../../../src/sidecar/service.ts';
import type { Life } from '../world/process.ts';
import type { Localhost } from './localhost.ts';

/** `finished`: after its last line; `expired`: there is no such session; `refused`: for another reason. */
export type StreamEnd = 'broken' | 'finished' | 'expired' | 'refused';

export interface StreamReader {
  onLine(line: StreamLine): void;
  onEnd(why: StreamEnd): void;
}

interface OpenStream {
  readonly app: Life;
  readonly sessionId: string;
  readonly subscription: EventSubscription;
  readonly break: () => void;
}

export class LocalStreams {
  readonly #localhost: Localhost;
  readonly #streams = new Set<OpenStream>();

  constructor(localhost: Localhost) {
    this.#localhost = localhost;
  }

  /** Opens the event stream of a session. Returns how to close it. */
  open(app: Life, sessionId: string, reader: StreamReader): () => void {
    let stream: OpenStream | null = null;
    /** The application has closed it, or has been told of its end. */
    let isOver = false;
    const toApp = this.#lineTo(app);
    const end = (why: StreamEnd): void =>
      toApp(() => {
        if (isOver) return;
        isOver = true;
        reader.onEnd(why);
      });
    const onLine = (line: StreamLine): void => {
      toApp(() => {
        if (!isOver) reader.onLine(line);
      });
      if (line.event !== 'sessionLost' || stream === null) return;
      this.#ended(stream);
      end('finished');
    };
    this.#localhost.arrive(
      (service) => {
        if (isOver || app.isOver) return;
        try {
          const subscription = service.openEvents(sessionId, onLine);
          stream = { app, sessionId, subscription, break: () => end('broken') };
          this.#streams.add(stream);
          const signs = this.#localhost.signsOf(sessionId);
          signs.isStreamOpen = true;
          signs.isUnseen = false;
          this.#called(sessionId);
        } catch (error) {
          this.#localhost.checkError(error, 'events');
          const isExpired = error instanceof LeaseholdError && error.code === 'SESSION_EXPIRED';
          if (!isExpired) this.#called(sessionId);
          end(isExpired ? 'expired' : 'refused');
        }
      },
      () => end('broken'),
    );
    return () => {
      isOver = true;
      this.#localhost.travel(() => {
        if (stream !== null) this.#close(stream);
      });
    };
  }

  applicationDied(app: Life): void {
    for (const stream of [...this.#streams]) {
      if (stream.app === app) this.#localhost.travel(() => this.#close(stream));
    }
  }

  sidecarDied(): void {
    for (const stream of [...this.#streams]) stream.break();
    this.#streams.clear();
  }

  /** A way to the application on which nothing overtakes anything. */
  #lineTo(app: Life): (action: () => void) => void {
    const { world } = this.#localhost;
    let lastUs = 0;
    return (action) => {
      lastUs = Math.max(lastUs + 1, world.nowUs + this.#localhost.drawDelayUs());
      world.at(lastUs, () => app.process.enter(app, 'message', action));
    };
  }

  #close(stream: OpenStream): void {
    if (!this.#streams.has(stream)) return;
    this.#localhost.enterSidecar(() => {
      this.#ended(stream);
      stream.subscription.close();
    });
  }

  /** Opening a stream is a sign of life as any other call is. */
  #called(sessionId: string): void {
    this.#localhost.signsOf(sessionId).lastUs = this.#localhost.world.nowUs;
  }

  #ended(stream: OpenStream): void {
    this.#streams.delete(stream);
    const signs = this.#localhost.signsOf(stream.sessionId);
    signs.isStreamOpen = false;
    signs.streamMissingSinceUs = this.#localhost.world.nowUs;
  }
}
