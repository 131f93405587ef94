/**
 * Client streams of small frames, many to a connection, with the least that HTTP/2 asks of a client. The load generator shares two cores
 * with what it measures, and a stream of the gRPC library costs it as much for an operation as the service takes: what would be measured
 * is the generator. Real clients are on machines of their own.
 *
 * Only for loads whose frames are small and answered soon: nothing here splits a frame, or waits for the server to take more.
 */
import { Buffer } from 'node:buffer';
import { connect as connectSocket, type Socket } from 'node:net';
import type { ClientHandler, ClientStream } from '../../src/api/wire.ts';
import type { ConnectMethod } from '../../src/server/grpc/streams.ts';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const FRAME_HEAD_BYTES = 9;
/** Compressed or not, and the length of the message. */
const MESSAGE_HEAD_BYTES = 5;
const DATA = 0;
const HEADERS = 1;
const RESET = 3;
const SETTINGS = 4;
const PING = 6;
const GO_AWAY = 7;
const WINDOW_UPDATE = 8;
const ACKNOWLEDGED = 1;
const END_STREAM = 1;
const END_HEADERS = 4;
const RESET_CANCEL = 8;
const INITIAL_WINDOW_SETTING = 4;
const WINDOW_BYTES_MAX = 2 ** 31 - 1;
/** What a server takes at first, in one frame and in all. */
const FRAME_BYTES_MAX = 16_384;
const WINDOW_BYTES = 65_535;

interface Stream {
  readonly handler: ClientHandler;
  /** The beginning of a message whose end has not come. */
  rest: Buffer;
}

export class SmallFrames {
  readonly #method: ConnectMethod;
  readonly #authority: string;
  readonly #socket: Socket;
  readonly #streams = new Map<number, Stream>();
  #lastStream = -1;
  #outgoing: Buffer[] = [];
  #rest: Buffer = Buffer.alloc(0);
  /** What the server takes before it says that it takes more. */
  #window = WINDOW_BYTES;

  /** A connection to `host:port`. */
  constructor(endpoint: string, method: ConnectMethod) {
    const [host = '', port = ''] = endpoint.split(':');
    this.#method = method;
    this.#authority = endpoint;
    this.#socket = connectSocket({ host, port: Number(port), noDelay: true });
    this.#socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => {
      for (const { handler } of this.#streams.values()) handler.onClose();
      this.#streams.clear();
    });
    const setting = Buffer.alloc(6);
    setting.writeUInt16BE(INITIAL_WINDOW_SETTING, 0);
    setting.writeUInt32BE(WINDOW_BYTES_MAX, 2);
    this.#send(Buffer.from(PREFACE));
    this.#send(frame(SETTINGS, 0, 0, setting));
    this.#send(frame(WINDOW_UPDATE, 0, 0, uint32(WINDOW_BYTES_MAX - WINDOW_BYTES)));
  }

  connect(handler: ClientHandler): ClientStream {
    this.#lastStream += 2;
    const id = this.#lastStream;
    this.#streams.set(id, { handler, rest: Buffer.alloc(0) });
    this.#send(frame(HEADERS, END_HEADERS, id, this.#headers()));
    return {
      send: (message) => this.#sendMessage(id, this.#method.request.encode(message)),
      close: () => {
        if (!this.#streams.delete(id)) return;
        this.#send(frame(RESET, 0, id, uint32(RESET_CANCEL)));
        if (this.#streams.size === 0) this.#socket.end();
      },
    };
  }

  /** Fields by their number in HPACK's table or in plain text: nothing enters the table, so that there is none to keep. */
  #headers(): Buffer {
    const text = (value: string): Buffer => Buffer.from([value.length, ...Buffer.from(value)]);
    const post = Buffer.from([0x83]);
    const http = Buffer.from([0x86]);
    const path = [Buffer.from([0x04]), text(this.#method.definition.path)];
    const authority = [Buffer.from([0x01]), text(this.#authority)];
    const contentType = [Buffer.from([0x0f, 0x10]), text('application/grpc')];
    const te = [Buffer.from([0x00]), text('te'), text('trailers')];
    return Buffer.concat([post, http, ...path, ...authority, ...contentType, ...te]);
  }

  #sendMessage(stream: number, message: Buffer): void {
    const length = MESSAGE_HEAD_BYTES + message.length;
    this.#window -= length;
    if (length > FRAME_BYTES_MAX || this.#window < 0) throw new RangeError('frames too large for this load');
    const bytes = Buffer.allocUnsafe(FRAME_HEAD_BYTES + length);
    writeHead(bytes, { length, type: DATA, flags: 0, stream });
    bytes[FRAME_HEAD_BYTES] = 0;
    bytes.writeUInt32BE(message.length, FRAME_HEAD_BYTES + 1);
    bytes.set(message, FRAME_HEAD_BYTES + MESSAGE_HEAD_BYTES);
    this.#send(bytes);
  }

  /** In one write for all that the answers in one read have led to. */
  #send(bytes: Buffer): void {
    this.#outgoing.push(bytes);
    if (this.#outgoing.length > 1) return;
    process.nextTick(() => {
      const outgoing = this.#outgoing;
      this.#outgoing = [];
      this.#socket.write(outgoing.length === 1 ? bytes : Buffer.concat(outgoing));
    });
  }

  #receive(arrived: Buffer): void {
    const bytes = this.#rest.length === 0 ? arrived : Buffer.concat([this.#rest, arrived]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEAD_BYTES) {
      const end = at + FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5);
      this.#take(
        bytes[at + 3] as number,
        bytes[at + 4] as number,
        stream,
        bytes.subarray(at + FRAME_HEAD_BYTES, end),
      );
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  #take(type: number, flags: number, id: number, payload: Buffer): void {
    if (type === DATA) this.#takeMessages(id, payload);
    else if (type === SETTINGS && (flags & ACKNOWLEDGED) === 0) {
      this.#send(frame(SETTINGS, ACKNOWLEDGED, 0, Buffer.alloc(0)));
    } else if (type === PING && (flags & ACKNOWLEDGED) === 0) {
      this.#send(frame(PING, ACKNOWLEDGED, 0, Buffer.from(payload)));
    } else if (type === WINDOW_UPDATE && id === 0) this.#window += payload.readUInt32BE(0);
    else if (type === GO_AWAY) this.#socket.end();
    const isEnd = type === RESET || ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0);
    if (!isEnd) return;
    const handler = this.#streams.get(id)?.handler;
    this.#streams.delete(id);
    handler?.onClose();
  }

  #takeMessages(id: number, payload: Buffer): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    const bytes = stream.rest.length === 0 ? payload : Buffer.concat([stream.rest, payload]);
    let at = 0;
    while (bytes.length - at >= MESSAGE_HEAD_BYTES) {
      const end = at + MESSAGE_HEAD_BYTES + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      stream.handler.onFrame(this.#method.response.decode(bytes.subarray(at + MESSAGE_HEAD_BYTES, end)));
      at = end;
    }
    stream.rest = bytes.subarray(at);
  }
}

interface FrameHead {
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

function writeHead(to: Buffer, { length, type, flags, stream }: FrameHead): void {
  to.writeUIntBE(length, 0, 3);
  to[3] = type;
  to[4] = flags;
  to.writeUInt32BE(stream, 5);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  writeHead(head, { length: payload.length, type, flags, stream });
  return Buffer.concat([head, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
