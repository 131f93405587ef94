/** The door of a server that strangers can knock at: how many come in, and what is told of the others. */
import { createConnection, type Socket } from 'node:net';
import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-ports.ts';
import { type Door, openDoor } from './bounded-listener.ts';

const ends: (() => void)[] = [];
const PLAIN = ServerCredentials.createInsecure();
let nowMs = 0;
const told: { readonly fields: object; readonly message: string }[] = [];
const warn = (fields: object, message: string): void => void told.push({ fields, message });
const logger = { debug: warn, info: warn, warn, error: warn };
const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs };

afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
  told.length = 0;
});

interface Bounds {
  readonly connectionsMax: number;
  readonly connectionsPerSecondMax: number;
}

async function opened(bounds: Bounds): Promise<{ port: number; door: Door; address: string }> {
  const port = await freePort();
  const server = new Server();
  ends.push(() => server.forceShutdown());
  const address = `127.0.0.1:${port}`;
  const door = await openDoor(server, { address, credentials: PLAIN, ...bounds, clock, logger });
  ends.push(() => door.close());
  return { port, door, address };
}

/** True when the server speaks (HTTP/2 begins with its settings), false when it closes without a word. */
function knock(port: number): Promise<{ isIn: boolean; socket: Socket }> {
  const socket = createConnection(port, '127.0.0.1');
  ends.push(() => socket.destroy());
  return new Promise((resolve) => {
    socket.on('data', () => resolve({ isIn: true, socket }));
    socket.on('close', () => resolve({ isIn: false, socket }));
    socket.on('error', () => undefined);
  });
}

async function knockAll(port: number, count: number): Promise<Socket[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => knock(port)));
  return answers.filter(({ isIn }) => isIn).map(({ socket }) => socket);
}

describe('connections at once', () => {
  test('are bounded; one that leaves makes room', async () => {
    const { port } = await opened({ connectionsMax: 3, connectionsPerSecondMax: 1_000 });
    const inside = await knockAll(port, 10);
    expect(inside).toHaveLength(3);
    expect(await knockAll(port, 1)).toHaveLength(0);
    const left = inside[0] as Socket;
    const isClosed = new Promise((resolve) => left.on('close', resolve));
    left.end();
    await isClosed;
    expect(await knockAll(port, 2)).toHaveLength(1);
  });

  test('those that are refused are told of once, and a minute later how many there were', async () => {
    const { port } = await opened({ connectionsMax: 1, connectionsPerSecondMax: 1_000 });
    await knockAll(port, 6);
    const message = 'connections of operators are refused';
    const fields = { reason: '1 open connections', peer: '127.0.0.1', count: 1 };
    expect(told).toEqual([{ message, fields }]);
    nowMs += 60_000;
    await knockAll(port, 1);
    expect(told[1]).toEqual({ message, fields: { ...fields, count: 5 } });
  });
});

test('new connections are so many a second, whether the earlier ones are still there or not', async () => {
  const { port } = await opened({ connectionsMax: 100, connectionsPerSecondMax: 4 });
  const inside = await knockAll(port, 20);
  expect(inside).toHaveLength(4);
  for (const socket of inside) socket.destroy();
  expect(await knockAll(port, 3)).toHaveLength(0);
  expect(told[0]?.fields).toMatchObject({ reason: '4 new connections a second' });
  nowMs += 500;
  expect(await knockAll(port, 5)).toHaveLength(2);
});

test('calls are served through it; an address that is taken is an error; closed, nobody comes in', async () => {
  const { address, door, port } = await opened({ connectionsMax: 5, connectionsPerSecondMax: 5 });
  const again = { address, credentials: PLAIN, connectionsMax: 1, connectionsPerSecondMax: 1 };
  await expect(openDoor(new Server(), { ...again, clock, logger })).rejects.toThrow('EADDRINUSE');
  const client = new Client(address, credentials.createInsecure());
  ends.push(() => client.close());
  const error = await new Promise<Error | null>((resolve) => {
    const whole = (bytes: Buffer): Buffer => bytes;
    client.makeUnaryRequest('/a.B/C', whole, whole, Buffer.alloc(0), (failed) => resolve(failed));
  });
  expect(error?.message).toContain('UNIMPLEMENTED');
  door.close();
  expect(await knockAll(port, 1)).toHaveLength(0);
});
