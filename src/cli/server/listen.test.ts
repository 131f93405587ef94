/** What one connection to the port of the clients can begin, before it has proved anything. */
import { Buffer } from 'node:buffer';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { type Server, ServerCredentials, status } from '@grpc/grpc-js';
import { expect, onTestFinished, test } from 'vitest';
import { loadProtocol } from '../../server/grpc/proto.ts';
import { ASKED_WHETHER_THERE, connectMethod, type ServerStream } from '../../server/grpc/streams.ts';
import { createGrpcServer } from './listen.ts';

const STREAMS = 5_000;

/** A frame of HTTP/2. */
function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header that is neither compressed nor remembered. */
function header(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

const HELLO = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0)]);

function bound(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}

const HEADERS = Buffer.concat([
  header(':method', 'POST'),
  header(':scheme', 'http'),
  header(':path', '/leasehold.v1.LockService/Connect'),
  header(':authority', 'x'),
  header('content-type', 'application/grpc'),
  header('te', 'trailers'),
]);

test('of thousands of streams at once over one connection a hundred are taken: all of them held the loop for five seconds', async () => {
  const { definition } = connectMethod(loadProtocol());
  const server = createGrpcServer('clients');
  onTestFinished(() => server.forceShutdown());
  let begun = 0;
  server.addService(
    { Connect: definition },
    {
      Connect: (call: ServerStream) => {
        begun++;
        call.on('error', () => undefined);
        call.on('end', () => call.emit('error', { code: status.OK }));
      },
    },
  );
  const port = await bound(server);
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  const streams = Array.from({ length: STREAMS }, (_, at) => frame(1, 4, 2 * at + 1, HEADERS));
  socket.write(Buffer.concat([HELLO, ...streams]));
  // Whoever goes on beyond the bound is shown out.
  await closed;
  expect(begun).toBeGreaterThan(0);
  expect(begun).toBeLessThanOrEqual(100);
});

test('a connection whose other end is gone without a word is closed, one that is only quiet stays', async () => {
  expect(ASKED_WHETHER_THERE['grpc.keepalive_time_ms']).toBeLessThan(10 * 60_000);
  const server = createGrpcServer('clients', {
    'grpc.keepalive_time_ms': 50,
    'grpc.keepalive_timeout_ms': 100,
  });
  onTestFinished(() => server.forceShutdown());
  const port = await bound(server);
  const quiet = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => quiet.destroy());
  // It takes what is sent, as the machine in between would, and answers nothing.
  const gone = connect(port, '127.0.0.1');
  gone.on('error', () => undefined).resume();
  gone.write(HELLO);
  await new Promise<void>((resolve) => gone.on('close', () => resolve()));
  expect(quiet.closed).toBe(false);
});
