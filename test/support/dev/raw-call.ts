/** A POST on a socket of its own, which can be broken off at any byte and at any time. */
import { connect, type Socket } from 'node:net';

export class RawCall {
  readonly #socket: Socket;
  readonly #bytes: Buffer;
  #received = '';
  readonly closed: Promise<void>;

  private constructor(socket: Socket, bytes: Buffer) {
    this.#socket = socket;
    this.#bytes = bytes;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  /** Connected, nothing sent yet. */
  static async open(port: number, path: string, body: object): Promise<RawCall> {
    const text = JSON.stringify(body);
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
    const bytes = Buffer.from(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawCall(socket, bytes);
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** What came back so far. */
  get received(): string {
    return this.#received;
  }

  /** Sends the request, or only its first bytes; resolves when the operating system has them. */
  send(bytes = this.#bytes.length): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.write(this.#bytes.subarray(0, bytes), () => resolve());
    });
  }

  /** FIN after what was sent, as a process that ends. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** RST: the connection is torn down, as by a proxy that gives up. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }
}
