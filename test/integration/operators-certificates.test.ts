/** Certificates that must open nothing on the operators' port: ended, not yet valid, of others, for something else, or with a name that only looks right. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Client, credentials, type StatusObject, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Certified } from '../../src/cli/group/authority.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { type AdminServer, startAdminListener } from '../../src/server/grpc/admin-server.ts';
import { ReloadingServerCredentials, watchKeyPair } from '../../src/server/security/tls.ts';
import { Group, protocol } from '../support/admin-services.ts';
import { authority, certify, type Leaf, SERVER_AUTH, type Signer } from '../support/certificates.ts';
import { freePort } from '../support/free-ports.ts';

const OPERATOR = 'operator.leasehold-system';
const SPIFFE = 'spiffe://cluster.local/ns/ops/sa/operator';
const MINUTE_MS = 60_000;
const folder = mkdtempSync(join(tmpdir(), 'leasehold-certificates-'));
const runtime = createSystemRuntime({ logLevel: 'silent' });

let port = 0;
let server: AdminServer;
let pair: ReturnType<typeof watchKeyPair>;
let operators: Signer;
let served: Group;
let ofGroup: Signer;

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
}

beforeAll(async () => {
  operators = await authority('operators');
  ofGroup = await authority('group');
  const own = await certify(operators, { dns: ['localhost'], ip: ['127.0.0.1'] });
  const ca = file('ca.crt', operators.certificate.toString('pem'));
  pair = watchKeyPair({ ca, cert: file('own.crt', own.cert), key: file('own.key', own.key) }, runtime);
  served = await Group.start('payouts');
  port = await freePort();
  server = await startAdminListener({
    address: `127.0.0.1:${port}`,
    credentials: new ReloadingServerCredentials(pair),
    operators: { administrators: [OPERATOR, SPIFFE], readers: [] },
    served: () => [served],
    clock: runtime.clock,
    timers: runtime.timers,
    logger: runtime.logger,
  });
});

afterAll(async () => {
  await server?.close();
  pair?.close();
  await served?.replica.stop();
  rmSync(folder, { recursive: true });
});

interface Called {
  /** gRPC status of Inspect.Status; null: there was no connection. */
  readonly status: string | null;
  /** What the server gave to be resumed with; undefined: nothing. */
  readonly ticket: Buffer | undefined;
}

/** One call over a connection of its own, by hand: no client library resumes TLS sessions as an attacker would. */
function call(own: Pick<Certified, 'cert' | 'key'> | null, session?: Buffer): Promise<Called> {
  return new Promise((resolve) => {
    let ticket: Buffer | undefined;
    const socket = connectTls({
      ...{ host: '127.0.0.1', port, servername: 'localhost', ALPNProtocols: ['h2'] },
      ca: operators.certificate.toString('pem'),
      ...(own === null ? {} : { cert: own.cert, key: own.key }),
      ...(session === undefined ? {} : { session }),
    });
    const client = connectHttp2('https://localhost', { createConnection: () => socket });
    const done = (status: string | null): void => {
      client.destroy();
      socket.destroy();
      resolve({ status, ticket });
    };
    socket.on('session', (given) => {
      ticket = given;
    });
    socket.on('error', () => done(null));
    client.on('error', () => done(null));
    client.on('close', () => done(null));
    const request = client.request({
      ':method': 'POST',
      ':path': '/leasehold.v1.Inspect/Status',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const told = (headers: { readonly [name: string]: unknown }): void => {
      const status = headers['grpc-status'];
      // What comes behind the answer is waited for: tickets do.
      if (status !== undefined) setTimeout(() => done(String(status)), 50);
    };
    request.on('response', told);
    request.on('trailers', told);
    request.on('error', () => undefined);
    request.resume();
    request.end(Buffer.alloc(5));
  });
}

const OK = '0';
const PERMISSION_DENIED = '7';

test('the operator is let in, by either kind of name', async () => {
  expect(await call(await certify(operators, { dns: [OPERATOR] }))).toMatchObject({ status: OK });
  expect(await call(await certify(operators, { uri: [SPIFFE] }))).toMatchObject({ status: OK });
});

describe('no connection with', () => {
  test.each<readonly [string, () => Promise<Pick<Certified, 'cert' | 'key'> | null>]>([
    ['none', async () => null],
    ['one that has ended', () => certify(operators, { dns: [OPERATOR], endsInMs: -MINUTE_MS })],
    ['one that has not begun', () => certify(operators, { dns: [OPERATOR], beginsInMs: MINUTE_MS })],
    ['one that is for servers alone', () => certify(operators, { dns: [OPERATOR], usages: [SERVER_AUTH] })],
    ['one of another authority', () => certify(ofGroup, { dns: [OPERATOR] })],
    ['one signed by itself', () => certify(null, { dns: [OPERATOR] })],
    [
      'one that an operator has signed',
      async () => {
        const operator = await certify(operators, { dns: [OPERATOR] });
        const { cert, key } = await certify(operator, { dns: [OPERATOR] });
        return { cert: `${cert}\n${operator.cert}`, key };
      },
    ],
  ])('%s', async (_what, certificate) => {
    expect(await call(await certificate())).toMatchObject({ status: null });
  });
});

describe('FORBIDDEN for a certificate of the right authority', () => {
  test.each<readonly [string, Leaf]>([
    ['in upper case', { dns: [OPERATOR.toUpperCase()] }],
    ['with a wildcard', { dns: ['*.leasehold-system'] }],
    ['with a dot at its end', { dns: [`${OPERATOR}.`] }],
    ['with a null byte behind the name', { dns: [`${OPERATOR}\u0000.example`] }],
    ['with the name inside another, behind a comma', { dns: [`a, DNS:${OPERATOR}, b`] }],
    ['with the name inside a URI, behind a comma', { uri: [`spiffe://a/, DNS:${OPERATOR}, URI:${SPIFFE}`] }],
    ['with the name in quotes', { dns: [`"${OPERATOR}"`] }],
    ['with the name as a URI', { uri: [OPERATOR] }],
    ['with the URI as a DNS name', { dns: [SPIFFE] }],
    ['with a longer URI', { uri: [`${SPIFFE}/x`] }],
  ])('%s', async (_what, names) => {
    expect(await call(await certify(operators, names))).toMatchObject({ status: PERMISSION_DENIED });
  });
});

test('a certificate that has ended opens nothing by resuming a TLS session of the time before', async () => {
  const short = await certify(operators, { dns: [OPERATOR], endsInMs: 2_500 });
  const before = await call(short);
  expect(before.status).toBe(OK);
  await pause(3_000);
  expect((await call(short, before.ticket)).status).toBeNull();
  // Nor does whoever took the ticket and has no key at all.
  expect((await call(null, before.ticket)).status).toBeNull();
});

test('a certificate that has ended serves no more over a connection that is open, and ends what it follows', async () => {
  const { cert, key } = await certify(operators, { dns: [OPERATOR], endsInMs: 3_000 });
  const ca = Buffer.from(operators.certificate.toString('pem'));
  const secure = credentials.createSsl(ca, Buffer.from(key), Buffer.from(cert));
  const client = new Client(`localhost:${port}`, secure);
  onTestFinished(() => client.close());
  const { Read: read } = protocol.service('leasehold.v1.History');
  const { Status: inspect } = protocol.service('leasehold.v1.Inspect');
  if (read === undefined || inspect === undefined) throw new Error('no such methods');
  const ask = (): Promise<number> =>
    new Promise((resolve) => {
      const { path, requestSerialize, responseDeserialize } = inspect;
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { namespace: '' }, (error) =>
        resolve(error?.code ?? status.OK),
      );
    });
  expect(await ask()).toBe(status.OK);
  const { path, requestSerialize, responseDeserialize } = read;
  const following = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {
    namespace: '',
    from: 0,
    follow: true,
  });
  let entries = 0;
  following.on('data', () => entries++);
  following.on('error', () => undefined);
  const end = await new Promise<StatusObject>((resolve) => following.on('status', resolve));
  expect(entries).toBeGreaterThan(0);
  expect(end).toMatchObject({ code: status.UNAUTHENTICATED, details: expect.stringContaining('ended at') });
  expect(await ask()).toBe(status.UNAUTHENTICATED);
}, 20_000);
