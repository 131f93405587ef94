/**
 * The way of one sidecar to one lock group, in a test's hand: frames of either direction flow, are held back or get lost;
 * streams break on both sides or on one. Everything that was sent is written down.
 */
import type { Identity } from '../../../src/api/entry.ts';
import type {
  ClientFrame,
  ClientHandler,
  ClientRequestBody,
  ClientStream,
  ServerFrame,
} from '../../../src/api/wire.ts';
import type { FrontEnd } from '../../../src/server/front-end/front-end.ts';
import type { Connect } from '../../../src/sidecar/group-client.ts';
import type { VirtualRuntime } from '../virtual-runtime.ts';

const IDENTITY: Identity = { account: 'dev/developer', podUid: '' };

export type Flow = 'flows' | 'held' | 'lost';

interface Written<T> {
  readonly atMs: number;
  readonly stream: number;
  readonly frame: T;
}

interface Stream {
  readonly number: number;
  readonly handler: ClientHandler;
  atServer: ClientStream | null;
  isOpen: boolean;
}

export class Line {
  /** What clients sent, whether it arrived or not. */
  readonly sent: Written<ClientFrame>[] = [];
  readonly received: Written<ServerFrame>[] = [];
  /** Streams opened so far. */
  connects = 0;
  /** While true no stream can be opened. */
  isDown = false;
  readonly #runtime: VirtualRuntime;
  readonly #frontEnd: () => FrontEnd | null;
  readonly #streams = new Set<Stream>();
  #toServer: Flow = 'flows';
  #toClient: Flow = 'flows';
  #heldToServer: (() => void)[] = [];
  #heldToClient: (() => void)[] = [];

  constructor(runtime: VirtualRuntime, frontEnd: () => FrontEnd | null) {
    this.#runtime = runtime;
    this.#frontEnd = frontEnd;
  }

  get streams(): number {
    return this.#streams.size;
  }

  set toServer(flow: Flow) {
    this.#toServer = flow;
    if (flow === 'flows') for (const arrive of this.#heldToServer.splice(0)) arrive();
  }

  set toClient(flow: Flow) {
    this.#toClient = flow;
    if (flow === 'flows') for (const arrive of this.#heldToClient.splice(0)) arrive();
  }

  /** Both directions at once. */
  set both(flow: Flow) {
    this.toServer = flow;
    this.toClient = flow;
  }

  readonly connect: Connect = (handler) => {
    this.connects++;
    const frontEnd = this.isDown ? null : this.#frontEnd();
    const stream: Stream = { number: this.connects, handler, atServer: null, isOpen: frontEnd !== null };
    if (frontEnd === null) this.#runtime.timers.soon(() => handler.onClose());
    else this.#open(stream, frontEnd);
    return {
      send: (frame) => this.#send(stream, frame),
      close: () => this.#close(stream),
    };
  };

  /** All streams break; the sidecar is told, the group too. What was held back is lost. */
  break(): void {
    this.#heldToServer = [];
    this.#heldToClient = [];
    for (const stream of [...this.#streams]) {
      this.#close(stream);
      stream.handler.onClose();
    }
  }

  /** A frame that no server sent, to the newest stream. */
  inject(frame: Partial<ServerFrame> & Pick<ServerFrame, 'position'>): void {
    [...this.#streams].at(-1)?.handler.onFrame({ leading: true, answers: [], notices: [], ...frame });
  }

  /** Requests of one type that were sent, in order. */
  requests<T extends ClientRequestBody['type']>(type: T): Extract<ClientRequestBody, { type: T }>[] {
    return this.sent
      .flatMap(({ frame }) => frame.requests.map(({ body }) => body))
      .filter((body): body is Extract<ClientRequestBody, { type: T }> => body.type === type);
  }

  /** Keepalives that were sent. */
  get keepalives(): readonly {
    readonly atMs: number;
    readonly number: number;
    readonly sessions: readonly number[];
  }[] {
    return this.sent.flatMap(({ atMs, frame: { keepalive } }) =>
      keepalive === undefined
        ? []
        : [{ atMs, number: keepalive.number, sessions: keepalive.sessions.map(({ session }) => session) }],
    );
  }

  #open(stream: Stream, frontEnd: FrontEnd): void {
    this.#streams.add(stream);
    stream.atServer = frontEnd.connect(IDENTITY, {
      onFrame: (frame) => this.#toClientFrom(stream, frame),
      onClose: () => {
        if (!this.#streams.delete(stream)) return;
        stream.isOpen = false;
        stream.handler.onClose();
      },
    });
  }

  #send(stream: Stream, frame: ClientFrame): void {
    this.sent.push({ atMs: this.#runtime.nowMs, stream: stream.number, frame });
    const arrive = (): void => {
      if (stream.isOpen) stream.atServer?.send(frame);
    };
    if (this.#toServer === 'flows') arrive();
    else if (this.#toServer === 'held') this.#heldToServer.push(arrive);
  }

  #toClientFrom(stream: Stream, frame: ServerFrame): void {
    const arrive = (): void => {
      if (!stream.isOpen) return;
      this.received.push({ atMs: this.#runtime.nowMs, stream: stream.number, frame });
      stream.handler.onFrame(frame);
    };
    if (this.#toClient === 'flows') arrive();
    else if (this.#toClient === 'held') this.#heldToClient.push(arrive);
  }

  #close(stream: Stream): void {
    stream.isOpen = false;
    if (this.#streams.delete(stream)) stream.atServer?.close();
  }
}
