/** Who may call a lock server's services for operators from elsewhere: certificates decide, of the right authority and for a name that is listed. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { Authority, TokenIssuer } from '../../src/cli/group/authority.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { type AdminServer, startAdminListener } from '../../src/server/grpc/admin-server.ts';
import { admission } from '../../src/server/grpc/operators.ts';
import { dialServer, ReloadingServerCredentials, watchKeyPair } from '../../src/server/security/tls.ts';
import { collect, Group, protocol } from '../support/admin-services.ts';
import { leasehold } from '../support/cli.ts';
import { freePort } from '../support/free-ports.ts';

const OPERATOR = 'operator.leasehold-system';
const READER = 'spiffe://cluster.local/ns/monitoring/sa/reader';
const PEOPLE = { administrators: [OPERATOR], readers: [READER] };
const folder = mkdtempSync(join(tmpdir(), 'leasehold-operators-'));
const runtime = createSystemRuntime({ logLevel: 'silent' });

let endpoint = '';
let group: Group;
let server: AdminServer;
let pair: ReturnType<typeof watchKeyPair>;

/** Path of a file with this text. */
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

beforeAll(async () => {
  const [authority, foreign] = [await Authority.make('operators'), await Authority.make('somebody else')];
  const own = await authority.certify('server', { dns: ['localhost'], ip: ['127.0.0.1'] });
  file('ca.crt', authority.certificate);
  file('foreign-ca.crt', foreign.certificate);
  for (const [name, by, names] of [
    ['operator', authority, { dns: [OPERATOR] }],
    ['reader', authority, { uri: [READER] }],
    ['stranger', authority, { dns: ['stranger.leasehold-system'] }],
    ['forged', foreign, { dns: [OPERATOR] }],
  ] as const) {
    const { cert, key } = await by.certify(name, names);
    file(`${name}.crt`, cert);
    file(`${name}.key`, key);
  }
  pair = watchKeyPair(
    { ca: join(folder, 'ca.crt'), cert: file('server.crt', own.cert), key: file('server.key', own.key) },
    runtime,
  );
  group = await Group.start('payouts');
  endpoint = `127.0.0.1:${await freePort()}`;
  server = await startAdminListener({
    address: endpoint,
    credentials: new ReloadingServerCredentials(pair),
    operators: PEOPLE,
    served: () => [group],
    clock: runtime.clock,
    timers: runtime.timers,
    logger: runtime.logger,
  });
});

afterAll(async () => {
  await server?.close();
  pair?.close();
  await group?.replica.stop();
  rmSync(folder, { recursive: true });
});

const flags = (who: string, ca = 'ca') => [
  '--endpoint',
  endpoint,
  '--ca',
  join(folder, `${ca}.crt`),
  '--cert',
  join(folder, `${who}.crt`),
  '--key',
  join(folder, `${who}.key`),
];

const cli = (who: string, ...args: readonly string[]) => leasehold([...args, ...flags(who)]);

describe('by verbs, from elsewhere', () => {
  test('an administrator reads, follows and changes', async () => {
    const session = await group.open();
    const token = await group.lock(session, 'one');
    const inspected = await cli('operator', 'inspect', '-o', 'json');
    expect({ code: inspected.code, stderr: inspected.stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(inspected.stdout)).toMatchObject([{ namespace: 'payouts', held: 1 }]);
    const history = await cli('operator', 'history', 'read');
    expect(history.stdout.trim().split('\n').length).toBeGreaterThan(1);
    const broken = await cli(
      'operator',
      'break',
      'payouts/one',
      '--token',
      `${token}`,
      '--reason',
      'test',
      '--now',
    );
    expect(broken).toMatchObject({ code: 0, stderr: '' });
  });

  test('a reader reads, and is told that it may not change anything', async () => {
    expect((await cli('reader', 'inspect')).code).toBe(0);
    expect((await cli('reader', 'history', 'read')).code).toBe(0);
    const refused = await cli('reader', 'break', 'payouts/one', '--token', '1', '--reason', 'test');
    expect(refused.code).toBe(125);
    expect(refused.stderr).toMatch(/spiffe.*may only read.*admin\.administrators/);
  });

  test('a name that is not listed is refused, by its name', async () => {
    for (const verb of [['inspect'], ['history', 'read'], ['group', 'snapshot']]) {
      const { code, stdout, stderr } = await cli('stranger', ...verb);
      expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
      expect(stderr).toMatch(/stranger\.leasehold-system.*no operator.*admin\.administrators/);
    }
  });

  test('a certificate of another authority is not taken, whatever name it has', async () => {
    const { code, stdout, stderr } = await cli('forged', 'inspect');
    expect({ code, stdout }).toEqual({ code: 123, stdout: '' });
    expect(stderr).toMatch(/does not take the certificate in --cert.*tls\.admin\.ca/);
  });

  test('nor is a server of another authority talked to', async () => {
    const { code, stderr } = await leasehold(['inspect', ...flags('operator', 'foreign-ca')]);
    expect(code).toBe(123);
    expect(stderr).toMatch(/not signed by the authority in --ca/);
  });

  test('what is missing, wrong or in the way is named', async () => {
    const few = await leasehold(['inspect', '--endpoint', endpoint, '--ca', join(folder, 'ca.crt')]);
    expect(few).toMatchObject({ code: 125, stderr: expect.stringMatching(/name --cert, --key/) });
    const swapped = await leasehold(['inspect', ...flags('operator').with(7, join(folder, 'reader.key'))]);
    expect(swapped).toMatchObject({ code: 125, stderr: expect.stringContaining('--cert and --key') });
    const absent = await leasehold(['inspect', ...flags('nobody')]);
    expect(absent).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(/--cert: .*nobody.crt cannot be read: there is no such file/),
    });
    const alone = await leasehold(['inspect', '--key', join(folder, 'operator.key')]);
    expect(alone).toMatchObject({ code: 125, stderr: expect.stringContaining('--key: for --endpoint') });
    const both = await leasehold(['inspect', ...flags('operator'), '--admin-socket', 'x']);
    expect(both).toMatchObject({ code: 125, stderr: expect.stringContaining('cannot be used with') });
    const closed = await leasehold(['inspect', ...flags('operator').with(1, '127.0.0.1:1')]);
    expect(closed).toMatchObject({
      code: 123,
      stderr: expect.stringMatching(/nobody listens.*listen\.admin/),
    });
    const named = await leasehold(['inspect', ...flags('operator'), '--server-name', 'locks.example']);
    expect(named).toMatchObject({ code: 123, stderr: expect.stringContaining('--server-name') });
  });
});

describe('an application', () => {
  async function call(metadata: Metadata, own: { cert: string; key: string } | null): Promise<ServiceError> {
    const read = (name: string) => Buffer.from(name);
    const dial = dialServer(
      pair.value.ca as Buffer,
      endpoint,
      undefined,
      own === null ? null : { cert: read(own.cert), key: read(own.key) },
    );
    const client = new Client(endpoint, dial.credentials, dial.options);
    const method = protocol.service('leasehold.v1.Admin').Break;
    if (method === undefined) throw new Error('no Break');
    const { path, requestSerialize, responseDeserialize } = method;
    const request = { namespace: '', name: 'one', token: 1, now: true, reason: 'x', by: 'x' };
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, (error) => {
        client.close();
        if (error === null) reject(new Error('it was served'));
        else resolve(error);
      });
    });
  }

  test('with its token and no certificate gets no connection; nor does plain text', async () => {
    const issuer = await TokenIssuer.make();
    const metadata = new Metadata();
    const token = await issuer.issue({ account: 'payments/worker', podUid: 'pod-1' });
    metadata.set('authorization', `Bearer ${token}`);
    expect((await call(metadata, null)).code).toBe(status.UNAVAILABLE);
    const plain = new Client(endpoint, credentials.createInsecure());
    const ready = new Promise<unknown>((resolve) => plain.waitForReady(Date.now() + 500, resolve));
    expect(await ready).toBeInstanceOf(Error);
    plain.close();
  });

  test('with a token beside a certificate for another purpose is who the certificate says: nobody', async () => {
    const metadata = new Metadata();
    metadata.set('authorization', 'Bearer a.b.c');
    const [cert, key] = ['crt', 'key'].map((end) => readFileSync(join(folder, `stranger.${end}`), 'utf8'));
    const error = await call(metadata, { cert: cert as string, key: key as string });
    expect(error.code).toBe(status.PERMISSION_DENIED);
    expect(error.metadata.get('leasehold-code')).toEqual(['FORBIDDEN']);
  });
});

test('a method that no list names is closed to all; health is open to whoever has a certificate', () => {
  const named = (...names: string[]) => names.join(', ');
  const may = (path: string, names: string | undefined) => admission(path, names, PEOPLE).isAdmitted;
  expect(may('/leasehold.v1.Admin/Break', named(`DNS:${OPERATOR}`))).toBe(true);
  expect(may('/leasehold.v1.Inspect/Status', named('DNS:x', `URI:${READER}`))).toBe(true);
  expect(may('/leasehold.v1.Admin/Break', `URI:${READER}`)).toBe(false);
  expect(may('/leasehold.v1.Other/Call', `DNS:${OPERATOR}`)).toBe(false);
  expect(may('/grpc.health.v1.Health/Check', 'DNS:anybody')).toBe(true);
  expect(may('/grpc.health.v1.Health/Check', undefined)).toBe(false);
  // A name is one as a whole, and of its own kind.
  expect(may('/leasehold.v1.Admin/Break', `DNS:x.${OPERATOR}`)).toBe(false);
  expect(may('/leasehold.v1.Admin/Break', `URI:${OPERATOR}`)).toBe(false);
  expect(may('/leasehold.v1.Inspect/Status', `DNS:${READER}`)).toBe(false);
  expect(may('/leasehold.v1.Admin/Break', `DNS:"x\\u002c DNS:${OPERATOR}"`)).toBe(false);
});

test('a client is given its place in a history that is followed, over TLS as over a socket', async () => {
  const own = {
    cert: readFileSync(join(folder, 'reader.crt')),
    key: readFileSync(join(folder, 'reader.key')),
  };
  const client = new AdminClient(endpoint, dialServer(pair.value.ca as Buffer, endpoint, undefined, own));
  const entries = await collect(client.readHistory({ namespace: '', from: 1, follow: false }));
  expect(entries.map(({ index }) => index)).toEqual(entries.map((_, at) => at + 1));
  expect(entries.length).toBeGreaterThan(0);
  client.close();
});

test('a thousand connections at once cost a few handshakes, and operators are served after them as before', async () => {
  const [cert, key] = ['crt', 'key'].map((end) => readFileSync(join(folder, `stranger.${end}`)));
  const [host, port] = endpoint.split(':') as [string, string];
  const beganMs = performance.now();
  const sockets = Array.from({ length: 1_000 }, () =>
    connect({ host, port: Number(port), cert, key, ca: pair.value.ca as Buffer, ALPNProtocols: ['h2'] }),
  );
  const ends = sockets.map(
    (socket) =>
      new Promise<'in' | 'out'>((resolve) => {
        socket.on('data', () => resolve('in')); // The server's settings: its own part of the handshake is done.
        socket.on('error', () => resolve('out'));
        socket.on('close', () => resolve('out'));
      }),
  );
  const results = await Promise.all(ends);
  const tookSeconds = (performance.now() - beganMs) / 1_000;
  const inside = results.filter((end) => end === 'in').length;
  expect(inside).toBeGreaterThan(0);
  expect(inside).toBeLessThanOrEqual(Math.min(200, 50 + 50 * tookSeconds));
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  expect((await cli('reader', 'inspect')).code).toBe(0);
}, 20_000);

test('who does not prove itself in time is put out', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const impatient = await startAdminListener({
    address,
    credentials: new ReloadingServerCredentials(pair, 200),
    operators: PEOPLE,
    served: () => [group],
    ...runtime,
  });
  const silent = createConnection(Number(address.split(':')[1]), '127.0.0.1');
  silent.on('error', () => undefined);
  const isPutOut = new Promise((resolve) => silent.on('close', () => resolve(true)));
  expect(await isPutOut).toBe(true);
  await impatient.close();
});
