/** The event stream: its lines, its ends, its bound. */
import type { IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';
import { LeaseholdError } from '../../api/errors.ts';
import type { StreamLine } from '../service.ts';
import { eventLine } from './answers.ts';
import { STREAM_BUFFER_BYTES_MAX } from './events.ts';

let served: ServedFake;
afterEach(() => served.close());

async function listen() {
  served = await serveFake();
  const { sessionId } = await served.fake.openSession({ client: 'worker', keepalive: 'stream' });
  const response = await served.client.open({ method: 'GET', path: `/v1/sessions/${sessionId}/events` });
  response.on('error', () => undefined);
  expect(response.statusCode).toBe(200);
  return { sessionId, response };
}

/** All lines until the stream ends. */
async function linesOf(response: IncomingMessage): Promise<unknown[]> {
  const lines: unknown[] = [];
  for await (const line of createInterface({ input: response })) lines.push(JSON.parse(line));
  return lines;
}

describe('event stream', () => {
  it('writes each kind of line in its documented form, in order, and ends with session_lost', async () => {
    const { sessionId, response } = await listen();
    const name = 'payouts/a';
    const lines: StreamLine[] = [
      { event: 'queued', name, position: 2, request: 'r' },
      { event: 'queued', name, position: 1 },
      { event: 'granted', name, token: 7, request: 'r', deadlineInMs: 12_000.9 },
      { event: 'jeopardy', deadlineInMs: 4_500 },
      { event: 'restored', deadlineInMs: 12_000 },
      { event: 'revoking', name, token: 7, cause: 'maxHold', deadlineInMs: -1.5 },
      { event: 'lost', name: 'payouts/line\nbreak', token: 7, reason: 'revoked' },
      { event: 'alive' },
      { event: 'sessionLost', reason: 'expired' },
      { event: 'alive' },
    ];
    for (const line of lines) served.fake.emit(sessionId, line);
    const received = await linesOf(response);
    expect(received).toEqual([
      { event: 'alive' },
      { event: 'queued', name, position: 2, request: 'r' },
      { event: 'queued', name, position: 1 },
      { event: 'granted', name, token: 7, request: 'r', deadline_in_ms: 12_000 },
      { event: 'jeopardy', deadline_in_ms: 4_500 },
      { event: 'restored', deadline_in_ms: 12_000 },
      { event: 'revoking', name, token: 7, cause: 'maxHold', deadline_in_ms: -2 },
      { event: 'lost', name: 'payouts/line\nbreak', token: 7, reason: 'revoked' },
      { event: 'alive' },
      { event: 'session_lost', reason: 'expired' },
    ]);
    for (const line of received) expect(eventLine.safeParse(line).success).toBe(true);
    await vi.waitFor(() => expect(served.fake.closedSubscriptions).toBe(1));
    expect(await served.metrics.text()).toContain('leasehold_http_event_streams 0');
  });

  it('rule A3: a reader that closes its connection closes the subscription, once', async () => {
    const { response } = await listen();
    expect(await served.metrics.text()).toContain('leasehold_http_event_streams 1');
    response.destroy();
    await vi.waitFor(() => expect(served.fake.closedSubscriptions).toBe(1));
    expect(await served.metrics.text()).toContain('leasehold_http_event_streams 0');
    expect(served.logged).toEqual([]);
  });

  it('a reader that does not read is cut off after 1 MiB, and costs no more memory', async () => {
    const { sessionId, response } = await listen();
    response.pause();
    const reason = 'x'.repeat(64 * 1024);
    // What the operating system takes comes on top of the bound; it is a few MiB at most.
    const linesMax = 32 + STREAM_BUFFER_BYTES_MAX / reason.length + 256;
    let sent = 0;
    while (served.fake.closedSubscriptions === 0 && sent < linesMax) {
      served.fake.emit(sessionId, { event: 'lost', name: 'payouts/a', token: ++sent, reason });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(served.fake.closedSubscriptions).toBe(1);
    expect(sent).toBeGreaterThan(STREAM_BUFFER_BYTES_MAX / reason.length);
  });

  it('a session that is gone is answered before any line', async () => {
    served = await serveFake();
    const answer = await served.client.get('/v1/sessions/unknown/events');
    expect(answer).toMatchObject({ status: 410, body: { code: 'SESSION_EXPIRED' } });
  });

  it('a failure after the first line ends the stream', async () => {
    served = await serveFake();
    vi.spyOn(served.fake, 'openEvents').mockImplementation((_id, onLine) => {
      onLine({ event: 'alive' });
      throw new LeaseholdError('UNAVAILABLE', 'too late');
    });
    const response = await served.client.open({ method: 'GET', path: '/v1/sessions/s/events' });
    await expect(linesOf(response)).rejects.toThrow();
  });

  it('a session that ends while the stream opens', async () => {
    served = await serveFake();
    const close = vi.fn();
    vi.spyOn(served.fake, 'openEvents').mockImplementation((_id, onLine) => {
      onLine({ event: 'sessionLost', reason: 'expired' });
      return { close };
    });
    const response = await served.client.open({ method: 'GET', path: '/v1/sessions/s/events' });
    expect(await linesOf(response)).toEqual([{ event: 'session_lost', reason: 'expired' }]);
    await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
  });
});
