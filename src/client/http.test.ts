/** Calls and streams over a real connection, to a server that behaves and to one that does not. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Call, HttpTransport, type Json, type LineStream, NoAnswerError } from './http.ts';
import { systemRuntime } from './runtime.ts';

const GET: Call = { method: 'GET', path: '/v1/locks', limitMs: 5_000 };

async function serve(listener: RequestListener, prefix = '') {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const transport = new HttpTransport(new URL(`http://127.0.0.1:${port}${prefix}`), systemRuntime);
  onTestFinished(() => {
    transport.close();
    server.close();
    server.closeAllConnections();
  });
  return { transport, server };
}

async function kindOf(promise: Promise<unknown>): Promise<string> {
  const error = await promise.catch((thrown: unknown) => thrown);
  if (!(error instanceof NoAnswerError)) throw new Error(`no NoAnswerError but ${String(error)}`);
  return error.kind;
}

test('a call sends JSON below the URL of the API and gives status and body', async () => {
  const seen: unknown[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    seen.push([request.method, request.url, request.headers['content-type'], text]);
    response.writeHead(409).end('{"code":"HELD","owner":"é💶"}');
  };
  const { transport } = await serve((request, response) => void answer(request, response), '/api/');
  const body = { wait_ms: 5, owner: 'é💶' };
  const held = await transport.call({
    method: 'POST',
    path: '/v1/locks/a%2Fb/acquire',
    body,
    limitMs: 5_000,
  });
  expect(held).toEqual({ status: 409, body: { code: 'HELD', owner: 'é💶' } });
  await transport.call({ method: 'DELETE', path: '/v1/sessions/s', limitMs: 5_000, isBackground: true });
  expect(seen).toEqual([
    ['POST', '/api/v1/locks/a%2Fb/acquire', 'application/json', JSON.stringify(body)],
    ['DELETE', '/api/v1/sessions/s', undefined, ''],
  ]);
});

test('what is no JSON object counts as an empty one', async () => {
  const texts = ['<html>', '[]', 'null', '"text"', '', '{"a":'];
  const { transport } = await serve((_request, response) => response.writeHead(502).end(texts.pop()));
  for (let left = texts.length; left > 0; left--)
    expect(await transport.call(GET)).toEqual({ status: 502, body: {} });
});

test('no answer has one of four reasons', async () => {
  const gone = await serve((request) => request.socket.destroy());
  expect(await kindOf(gone.transport.call(GET))).toBe('broken');
  const half = await serve((request, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('{"a"');
    setTimeout(() => request.socket.destroy(), 10);
  });
  expect(await kindOf(half.transport.call(GET))).toBe('broken');
  const slow = await serve(() => undefined);
  expect(await kindOf(slow.transport.call({ ...GET, limitMs: 30 }))).toBe('late');
  expect(await kindOf(slow.transport.call({ ...GET, signals: [AbortSignal.timeout(20)] }))).toBe('aborted');
  expect(await kindOf(slow.transport.call({ ...GET, signals: [AbortSignal.abort()] }))).toBe('aborted');
  slow.server.close();
  slow.server.closeAllConnections();
  await pause(10);
  expect(await kindOf(slow.transport.call(GET))).toBe('refused');
});

test('giving up closes the connection, so that the service sees it', async () => {
  let closed = 0;
  const { transport } = await serve((request) => request.socket.once('close', () => closed++));
  const giveUp = new AbortController();
  const call = kindOf(transport.call({ ...GET, signals: [giveUp.signal] }));
  await pause(50);
  expect(closed).toBe(0);
  giveUp.abort();
  expect(await call).toBe('aborted');
  await pause(50);
  expect(closed).toBe(1);
});

test('a stream gives each line once it is whole, wherever the packets were cut', async () => {
  const { transport } = await serve((_request, response) => {
    const bytes = Buffer.from(
      '{"event":"alive"}\n{"event":"lost","reason":"é💶"}\nnot json\n{"event":"alive"}\n{"half":',
    );
    const cuts = [0, 5, 18, 50, 51, 53, 54, bytes.length];
    const write = (index: number): void => {
      const from = cuts[index];
      const to = cuts[index + 1];
      if (from === undefined || to === undefined) {
        response.end();
        return;
      }
      response.write(bytes.subarray(from, to));
      setTimeout(() => write(index + 1), 5);
    };
    write(0);
  });
  const lines: Json[] = [];
  const stream = await transport.stream(GET, (line) => lines.push(line));
  await (stream as LineStream).ended;
  expect(lines).toEqual([{ event: 'alive' }, { event: 'lost', reason: 'é💶' }, {}, { event: 'alive' }]);
});

test('a stream that is refused is an answer; one that is closed here ends there', async () => {
  let closed = 0;
  let isRefused = true;
  const { transport } = await serve((request, response) => {
    if (!isRefused) request.socket.once('close', () => closed++);
    if (isRefused) response.writeHead(410).end('{"code":"SESSION_EXPIRED"}');
    else response.writeHead(200).write('{"event":"alive"}\n');
  });
  expect(await transport.stream(GET, () => undefined)).toEqual({
    status: 410,
    body: { code: 'SESSION_EXPIRED' },
  });
  isRefused = false;
  const stream = (await transport.stream({ ...GET, limitMs: 200 }, () => undefined)) as LineStream;
  // The limit is for the beginning, not for the life of the stream.
  await pause(300);
  expect(closed).toBe(0);
  stream.close();
  await stream.ended;
  await pause(50);
  expect(closed).toBe(1);
});

test('a line without end is cut off instead of being kept', async () => {
  const { transport } = await serve((_request, response) => {
    response.writeHead(200);
    const more = (): void => {
      if (!response.destroyed) response.write('x'.repeat(16_384), () => setTimeout(more, 1));
    };
    more();
  });
  const stream = (await transport.stream(GET, () => undefined)) as LineStream;
  expect(await stream.ended).toBeUndefined();
});
