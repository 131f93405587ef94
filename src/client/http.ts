/**
 * The localhost API as calls: JSON in, JSON out, and the event stream line by line. Knows nothing of locks.
 * It uses node:http and not fetch: fetch gives up on an answer after five minutes, and a lock may be waited for a whole day;
 * and an open event stream must not keep a finished program from ending, which needs the socket.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { type ClientRuntime, onAbort } from './runtime.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly status: number;
  readonly body: Json;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below the URL of the API, percent-encoded. */
  readonly path: string;
  readonly body?: Json;
  /** Each of them hangs up. */
  readonly signals?: readonly AbortSignal[];
  /** How long the answer may take. */
  readonly limitMs: number;
  /** Does not keep the process from ending. */
  readonly isBackground?: boolean;
}

/** An open event stream. */
export interface LineStream {
  /** Resolves when it is over, whoever ended it. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface Transport {
  /** @throws NoAnswerError; every answer, of whatever status, is returned */
  call(call: Call): Promise<Answer>;
  /** Resolves with the stream, or with the answer that there is none. @throws NoAnswerError */
  stream(call: Call, onLine: (line: Json) => void): Promise<LineStream | Answer>;
  close(): void;
}

/** No answer came: the sidecar is not there, or the connection broke, or it took too long, or the caller gave up. */
export class NoAnswerError extends Error {
  readonly kind: 'refused' | 'broken' | 'late' | 'aborted';

  constructor(kind: NoAnswerError['kind'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'NoAnswerError';
    this.kind = kind;
  }
}

const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const LINE_CHARACTERS_MAX = 64 * 1024;

export class HttpTransport implements Transport {
  readonly #url: URL;
  readonly #runtime: ClientRuntime;
  readonly #agent: HttpAgent;

  constructor(url: URL, runtime: ClientRuntime) {
    this.#url = url;
    this.#runtime = runtime;
    const Agent = url.protocol === 'https:' ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true });
  }

  async call(call: Call): Promise<Answer> {
    return await this.#exchange(call, async (response) => ({
      status: response.statusCode ?? 0,
      body: jsonOf(await textOf(response)),
    }));
  }

  stream(call: Call, onLine: (line: Json) => void): Promise<LineStream | Answer> {
    return this.#exchange<LineStream | Answer>(call, async (response) => {
      if (response.statusCode === 200) return readLines(response, onLine);
      return { status: response.statusCode ?? 0, body: jsonOf(await textOf(response)) };
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Sends, and reads the response with `read`; the limit and the signals count until that is done. */
  #exchange<T>(call: Call, read: (response: IncomingMessage) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request = this.#start(call);
      const timer = this.#runtime.timers.after(
        call.limitMs,
        () =>
          end(() =>
            reject(new NoAnswerError('late', `no answer of ${this.#url.origin} within ${call.limitMs} ms`)),
          ),
        true,
      );
      const forget = onAbort(call.signals ?? [], () =>
        end(() => reject(new NoAnswerError('aborted', 'the caller gave up'))),
      );
      let isOver = false;
      const done = (): boolean => {
        if (isOver) return false;
        isOver = true;
        timer.cancel();
        forget();
        return true;
      };
      const end = (tell: () => void): void => {
        if (!done()) return;
        request.destroy();
        tell();
      };
      const fail = (error: unknown): void => end(() => reject(this.#noAnswer(error)));
      // For as long as the request lives: an error after the answer is nobody's, and unheard it would end the process.
      request.on('error', fail);
      request.once('response', (response) => {
        read(response).then((value) => {
          if (done()) resolve(value);
        }, fail);
      });
    });
  }

  #start({ method, path, body, isBackground = false }: Call): ClientRequest {
    const text = body === undefined ? null : Buffer.from(JSON.stringify(body));
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send({
      ...urlToHttpOptions(this.#url),
      agent: this.#agent,
      method,
      path: this.#url.pathname.replace(/\/$/, '') + path,
      headers: text === null ? {} : { 'content-type': 'application/json', 'content-length': text.length },
    });
    if (isBackground) request.once('socket', (socket) => socket.unref());
    request.end(text ?? undefined);
    return request;
  }

  #noAnswer(error: unknown): NoAnswerError {
    if (error instanceof NoAnswerError) return error;
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const kind = code === 'ECONNREFUSED' ? 'refused' : 'broken';
    const what =
      kind === 'refused' ? 'nothing listens there' : error instanceof Error ? error.message : String(error);
    return new NoAnswerError(kind, `no answer of ${this.#url.origin}: ${what}`, error);
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > ANSWER_BYTES_MAX) throw new NoAnswerError('broken', 'the answer is too long');
  }
  return text;
}

/** What is no JSON object counts as an empty one: the status says the rest. */
function jsonOf(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    return isJson(value) ? value : {};
  } catch {
    return {};
  }
}

function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readLines(response: IncomingMessage, onLine: (line: Json) => void): LineStream {
  // A program that has nothing else to do may end; the sidecar then sees the stream close.
  response.socket.unref();
  let rest = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(jsonOf(line));
    if (rest.length > LINE_CHARACTERS_MAX) response.destroy();
  });
  response.on('error', () => response.destroy());
  return {
    ended: new Promise((resolve) => {
      response.once('close', () => resolve());
    }),
    close: () => void response.destroy(),
  };
}
