/** Listens for HTTP, and answers in the API's own words even what is not HTTP. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LeaseholdError } from '../../api/errors.ts';
import type { Logger } from '../../platform/runtime.ts';
import { jsonAnswer, sendText } from './answer.ts';
import { invalid } from './problems.ts';

const LOOPBACK = '127.0.0.1';
const HEADERS_BYTES_MAX = 16 * 1024;
/** A request that has not arrived whole by then is refused; how long its answer takes does not count. */
const REQUEST_ARRIVES_WITHIN_MS = 30_000;
const CHECK_ARRIVALS_EVERY_MS = 5_000;
/** Longer than the idle time after which common clients close, so that they, not we, close and no request meets a closed door. */
const IDLE_CONNECTION_MS = 120_000;
const CONNECTIONS_MAX = 20_000;

export interface ListenOptions {
  readonly listener: RequestListener;
  /** 0 = any free port. */
  readonly port: number;
  /** By default the loopback address: nobody from outside this machine or pod. */
  readonly host?: string;
  /** What to change when the port is taken, for the error's text: `--port` or the like. */
  readonly portSetting: string;
  readonly logger: Logger;
}

export interface HttpServer {
  readonly port: number;
  /** `http://127.0.0.1:7070` */
  readonly url: string;
  /** Stops listening and closes all connections. */
  close(): Promise<void>;
}

/** Rejects with a message for people when the port cannot be had. */
export async function listenHttp(options: ListenOptions): Promise<HttpServer> {
  const { listener, port, host = LOOPBACK, portSetting, logger } = options;
  const server = createServer(
    {
      maxHeaderSize: HEADERS_BYTES_MAX,
      requestTimeout: REQUEST_ARRIVES_WITHIN_MS,
      headersTimeout: REQUEST_ARRIVES_WITHIN_MS,
      connectionsCheckingInterval: CHECK_ARRIVALS_EVERY_MS,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      // A missing Host is refused by the guard, in JSON.
      requireHostHeader: false,
    },
    listener,
  );
  server.maxConnections = CONNECTIONS_MAX;
  answerWhatIsNoRequest(server);
  const address = await bind(server, { port, host, portSetting });
  // Such as running out of file descriptors: the connection is lost, the server is not.
  server.on('error', (error) => logger.error({ error }, 'a connection could not be accepted'));
  return {
    port: address.port,
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Place = Required<Pick<ListenOptions, 'port' | 'host' | 'portSetting'>>;

function bind(server: Server, { port, host, portSetting }: Place): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(bindProblem(error, { port, host, portSetting }), { cause: error }));
    });
    server.listen({ port, host }, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('the server has no TCP address'));
      else resolve(address);
    });
  });
}

function bindProblem(error: NodeJS.ErrnoException, { port, host, portSetting }: Place): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} on ${host} is taken by another program. Stop that one, or choose another port with ${portSetting}.`;
    case 'EACCES':
      return `This user may not listen on port ${port} of ${host}. Choose a port above 1023 with ${portSetting}.`;
    default:
      return `Cannot listen on port ${port} of ${host} (${error.code ?? error.message}); the port is set with ${portSetting}.`;
  }
}

function answerWhatIsNoRequest(server: Server): void {
  const unanswered = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const responses = unanswered.get(request.socket) ?? new Set();
    unanswered.set(request.socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  });
  function refuseOn(socket: Duplex, error: LeaseholdError): void {
    const responses = [...(unanswered.get(socket) ?? [])];
    if (socket.writable && mayRefuse(responses)) writeRefusal(socket, error);
    else socket.destroy();
  }
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseOn(socket, parseProblem(error.code));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    // Node leaves this socket to us, its errors too: unheard, one of them would end the process.
    socket.on('error', () => socket.destroy());
    refuseOn(socket, new LeaseholdError('METHOD_NOT_ALLOWED', 'This is no proxy.', { field: 'method' }));
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const error = invalid({
      field: 'expect',
      limit: '100-continue',
      reason: 'no other expectation can be met',
    });
    sendText(response, error.status, jsonAnswer(error.toBody()), { connection: 'close' });
  });
}

/**
 * Bytes written to a connection are the answer to its oldest open request: a refusal of the next one would be taken for
 * it. So that is done only if there is none, or the one whose body could not be read to its end.
 */
function mayRefuse([oldest, ...others]: readonly ServerResponse[]): boolean {
  if (oldest === undefined) return true;
  return others.length === 0 && !oldest.req.complete && !oldest.headersSent;
}

function parseProblem(code: string | undefined): LeaseholdError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return invalid({
        field: 'headers',
        limit: HEADERS_BYTES_MAX,
        reason: `path and headers may have at most ${HEADERS_BYTES_MAX} bytes`,
      });
    case 'HPE_INVALID_URL':
      return invalid({
        field: 'path',
        limit: 'percent-encoded UTF-8',
        reason: 'blanks, control characters and everything that is not ASCII must be percent-encoded',
      });
    case 'HPE_INVALID_CONSTANT':
      return invalid({
        field: 'request',
        limit: 'HTTP/1.1',
        reason: 'is not valid HTTP; a blank in the path is sent as %20',
      });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return invalid({
        field: 'request',
        limit: REQUEST_ARRIVES_WITHIN_MS,
        reason: `did not arrive whole within ${REQUEST_ARRIVES_WITHIN_MS} ms`,
      });
    default:
      return invalid({ field: 'request', limit: 'HTTP/1.1', reason: 'is not valid HTTP' });
  }
}

function writeRefusal(socket: Duplex, error: LeaseholdError): void {
  const { contentType, text } = jsonAnswer(error.toBody());
  const head = [
    `HTTP/1.1 ${error.status} Refused`,
    `content-type: ${contentType}`,
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}
