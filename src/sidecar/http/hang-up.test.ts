/** What the service is told of callers that leave: rule A5 and the cases of group B begin with this signal. */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { FakeSidecar } from '../../../test/support/http/fake-sidecar.ts';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';
import { LeaseholdError } from '../../api/errors.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import type { AcquireOptions, Granted, Released } from '../service.ts';

const GRANTED: Granted = {
  sessionId: 's',
  token: 7,
  leaseTtlMs: 15_000,
  deadlineInMs: 12_000,
  deadlineMonotonicNs: 1n,
};

interface Pending {
  readonly hangUp: AbortSignal;
  grant(): void;
  fail(thrown: unknown): void;
}

/** Acquires and releases end when the test says so. */
class HeldBack extends FakeSidecar {
  readonly pending: Pending[] = [];
  releases = 0;

  override acquire(_name: string, { hangUp }: AcquireOptions): Promise<Granted> {
    return new Promise((resolve, reject) => {
      this.pending.push({ hangUp, grant: () => resolve(GRANTED), fail: reject });
    });
  }

  override async release(): Promise<Released> {
    await new Promise((resolve) => setTimeout(resolve, 20));
    this.releases++;
    return { already: false };
  }
}

const open: { served: ServedFake; sockets: Socket[] }[] = [];

async function serve() {
  const runtime = createSystemRuntime({ logLevel: 'silent' });
  const service = new HeldBack(runtime);
  const served = await serveFake({ service });
  const sockets: Socket[] = [];
  open.push({ served, sockets });
  /** A connection with its own record of what came back. */
  const dial = async () => {
    const socket = connect(served.server.port, '127.0.0.1');
    sockets.push(socket);
    const caller = { socket, received: '', closed: false };
    socket.on('data', (chunk) => {
      caller.received += chunk.toString();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      caller.closed = true;
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    return caller;
  };
  return { ...served, service, dial };
}

afterEach(async () => {
  for (const { served, sockets } of open.splice(0)) {
    for (const socket of sockets) socket.destroy();
    await served.close();
  }
});

function acquireRequest(name = 'a', action = 'acquire'): string {
  const body = action === 'acquire' ? '{"wait_ms":60000}' : '{"session_id":"s","token":7}';
  return `POST /v1/locks/payouts%2F${name}/${action} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

describe('hang-ups', () => {
  it('cases B02, B07: a caller that closes its connection while it waits', async () => {
    const { service, dial, metrics, logged } = await serve();
    const { socket } = await dial();
    socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    const [waiting] = service.pending;
    expect(waiting?.hangUp.aborted).toBe(false);
    socket.end();
    await vi.waitFor(() => expect(waiting?.hangUp.aborted).toBe(true));
    waiting?.fail(new LeaseholdError('CANCELLED', 'cancelled'));
    const counted =
      'leasehold_http_requests_total{route="/v1/locks/{name}/acquire",status="0",code="HANG_UP"} 1';
    await vi.waitFor(async () => expect(await metrics.text()).toContain(counted));
    expect(logged).toEqual([]);
  });

  it('case B01: a grant in the moment in which the caller is gone', async () => {
    const { service, dial, logged } = await serve();
    const { socket } = await dial();
    socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    const [waiting] = service.pending;
    const told = vi.fn();
    waiting?.hangUp.addEventListener('abort', () => {
      told();
      waiting.grant();
    });
    socket.resetAndDestroy();
    await vi.waitFor(() => expect(told).toHaveBeenCalledTimes(1));
    expect(logged).toEqual([]);
  });

  it('a caller that got its answer may go: nothing is taken back', async () => {
    const { service, dial } = await serve();
    const caller = await dial();
    caller.socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    service.pending[0]?.grant();
    await vi.waitFor(() => expect(caller.received).toContain('"acquired":true'));
    caller.socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(service.pending[0]?.hangUp.aborted).toBe(false);
  });

  it('several requests on one connection: each is told, also those whose turn to answer had not come', async () => {
    const { service, dial } = await serve();
    const { socket } = await dial();
    socket.write(['a', 'b', 'c'].map((name) => acquireRequest(name)).join(''));
    await vi.waitFor(() => expect(service.pending).toHaveLength(3));
    // Granted, but its answer waits behind that of the first: its caller does not know.
    service.pending[1]?.grant();
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    await vi.waitFor(() => {
      expect(service.pending.map(({ hangUp }) => hangUp.aborted)).toEqual([true, true, true]);
    });
  });

  it('junk after a waiting request closes the connection, and is not answered in its place', async () => {
    const { service, dial } = await serve();
    const caller = await dial();
    caller.socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    caller.socket.write('junk\r\n\r\n');
    await vi.waitFor(() => expect(caller.closed).toBe(true));
    expect(caller.received).toBe('');
    expect(service.pending[0]?.hangUp.aborted).toBe(true);
  });

  it('case B14: a release goes on when its caller hangs up', async () => {
    const { service, dial, logged } = await serve();
    const { socket } = await dial();
    socket.write(acquireRequest('a', 'release'), () => socket.destroy());
    await vi.waitFor(() => expect(service.releases).toBe(1));
    expect(logged).toEqual([]);
  });

  it('an unforeseen error counts as a hang-up, is logged and not told', async () => {
    const { service, dial, logged } = await serve();
    const caller = await dial();
    caller.socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    service.pending[0]?.fail(new TypeError('secret of ours'));
    await vi.waitFor(() => expect(caller.received).toContain('HTTP/1.1 503'));
    expect(caller.received).toContain('"acquired":false');
    expect(caller.received).toContain('"code":"UNAVAILABLE"');
    expect(caller.received).not.toContain('secret');
    expect(service.pending[0]?.hangUp.aborted).toBe(true);
    expect(logged).toEqual(['unexpected error in an HTTP route']);
  });

  it('rule A4: connections that this process closes as it stops are no hang-ups', async () => {
    const { service, dial, api, server, client } = await serve();
    const { sessionId } = await service.openSession({ client: 'w', keepalive: 'stream' });
    const stream = await client.open({ method: 'GET', path: `/v1/sessions/${sessionId}/events` });
    stream.on('error', () => undefined).resume();
    const caller = await dial();
    caller.socket.write(acquireRequest());
    await vi.waitFor(() => expect(service.pending).toHaveLength(1));
    api.beginStop();
    expect(await client.get('/v1/locks')).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
    expect((await client.get('/livez')).status).toBe(200);
    expect((await client.get('/readyz')).status).toBe(503);
    await server.close();
    await vi.waitFor(() => expect(caller.closed).toBe(true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(service.pending[0]?.hangUp.aborted).toBe(false);
    expect(service.closedSubscriptions).toBe(0);
  });
});
