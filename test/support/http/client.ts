/** HTTP as tests need it: a plain client, and bytes on a socket for what no client would send. */
import { Agent, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface Sent {
  readonly method: string;
  /** Sent as it is. */
  readonly path: string;
  /** An object is sent as JSON, a string or bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export class HttpClient {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** The response as soon as its head is there; for streams. */
  open(sent: Sent): Promise<IncomingMessage> {
    const { method, path, headers, signal } = sent;
    const body = bytesOf(sent.body);
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          host: '127.0.0.1',
          port: this.#port,
          agent: this.#agent,
          method,
          path,
          headers: {
            ...(body !== null && { 'content-type': 'application/json', 'content-length': body.length }),
            ...headers,
          },
          ...(signal !== undefined && { signal }),
        },
        resolve,
      );
      request.once('error', reject);
      request.end(body ?? undefined);
    });
  }

  async send(sent: Sent): Promise<Answered> {
    const response = await this.open(sent);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(Buffer.from(chunk));
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      text: Buffer.concat(chunks).toString('utf8'),
    };
  }

  /** Status and JSON body of an answer. */
  async json(sent: Sent): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const { status, text } = await this.send(sent);
    const body: unknown = JSON.parse(text);
    if (!isRecord(body)) throw new TypeError(`not a JSON object: ${text}`);
    return { status, body };
  }

  post(path: string, body: object = {}) {
    return this.json({ method: 'POST', path, body });
  }

  get(path: string) {
    return this.json({ method: 'GET', path });
  }

  close(): void {
    this.#agent.destroy();
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function bytesOf(body: unknown): Buffer | null {
  if (body === undefined) return null;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body), 'utf8');
}

/** Resolves with everything that comes back until the other side closes, or until `quietMs` bring nothing more. */
export function sendBytes(port: number, bytes: Buffer, quietMs: number): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const finish = () => {
      socket.destroy();
      resolve(Buffer.concat(chunks).toString('latin1'));
    };
    socket.setTimeout(quietMs, finish);
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on('error', finish);
    socket.on('close', finish);
  });
}
