/**
 * Who may do what in a group of real processes with TLS and tokens: what is refused, and that nobody loses anything while tokens, certificates,
 * keys and consumers are replaced on the running group.
 */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { Client, credentials, Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientRequestBody } from '../../src/api/wire.ts';
import { OPERATOR_FILES, OPERATOR_NAME } from '../../src/cli/group/security.ts';
import { SERVER_ID_HEADER } from '../../src/server/grpc/relay-client.ts';
import { asIs } from '../../src/server/grpc/streams.ts';
import { dialPlaintext, dialServer } from '../../src/server/security/tls.ts';
import { leasehold } from '../support/cli.ts';
import { acquireCommand } from '../support/core.ts';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import {
  Authority,
  GROUP_NAME,
  manifest,
  OTHER_ACCOUNT,
  PERSON,
  SECRET,
  SecureGroup,
  type TokenClaims,
  TokenIssuer,
} from '../support/group/secure-group.ts';

const HOUR_S = 3_600;
const OPEN: ClientRequestBody = {
  type: 'open',
  client: 'test',
  ttlMs: 5_000,
  maxHoldMs: 0,
  secretHash: 'ab'.repeat(32),
};
const nowS = () => Math.floor(Date.now() / 1_000);

let secure: SecureGroup;

beforeAll(async () => {
  secure = await SecureGroup.start();
}, ETCD_START_MS_MAX);

afterAll(() => secure?.end(), 60_000);

function lock(session: number, name: string) {
  return acquireCommand({ session, name, key: name });
}

describe('who is let in', () => {
  test('a token of a pod; also one of a person without a pod', async () => {
    expect(await secure.connect(await secure.token()).ask(OPEN)).toMatchObject({ type: 'opened' });
    const { podUid: _none, ...person } = { account: PERSON, podUid: undefined };
    const token = await secure.issuer.issue(person);
    expect(await secure.connect(token).ask(OPEN)).toMatchObject({ type: 'opened' });
  });

  test.each([
    ['no token', async () => null, /no token was sent/],
    ['what is no token', async () => 'a.b.c', /cannot be read/],
    ['another audience', () => secure.token({ audience: 'vault' }), /another audience.*leasehold/],
    ['a life over an hour', () => secure.token({ lifeSeconds: HOUR_S + 1 }), /lives for 3601 s.*3600/],
    ['no pod', () => secure.issuer.issue({ account: 'test/worker' }), /bound to no pod.*tokens\.people/],
    ['one not begun', () => secure.token({ issuedAt: nowS() + 600 }), /not valid yet/],
    [
      'one that ended two days ago',
      () => secure.token({ issuedAt: nowS() - 50 * HOUR_S }),
      /the token ended at/,
    ],
    [
      'one that somebody else signed',
      async () => (await TokenIssuer.make()).issue({ account: 'test/worker', podUid: 'pod-1' }),
      /signed by nobody that this lock server trusts/,
    ],
  ])('not with %s, and the token is not repeated', async (_what, make, reason) => {
    const token = await make();
    const { code, details } = await secure.connect(token).ended;
    expect(code).toBe(status.UNAUTHENTICATED);
    expect(details).toMatch(reason);
    if (token !== null && token.length > 10) expect(details).not.toContain(token.split('.')[1]);
  });

  test('an account that is no consumer proves who it is, and may not lock', async () => {
    const token = await secure.token({ account: 'elsewhere/worker' });
    expect(await secure.connect(token).ask(OPEN)).toMatchObject({ type: 'refused', code: 'FORBIDDEN' });
  });

  test('a lock server with a certificate of another authority is not talked to; nor is plain text taken', async () => {
    const token = await secure.token();
    const endpoint = secure.endpoints[0] as string;
    const foreign = Buffer.from((await Authority.make('somebody else')).certificate);
    for (const dial of [
      dialServer(foreign, endpoint),
      dialServer(secure.ca, endpoint, 'locks.example'),
      dialPlaintext(),
    ]) {
      const { code } = await secure.connect(token, { dial }).ended;
      expect(code).toBe(status.UNAVAILABLE);
    }
  });
});

test('a token that has ended keeps and gives back what its session holds, and takes nothing new', async () => {
  const owner = secure.connect(await secure.token({ podUid: 'pod-late' }));
  const session = await owner.open();
  const granted = await owner.ask(lock(session, 'late'));
  if (granted.type !== 'granted') throw new Error(JSON.stringify(granted));
  const ended = secure.connect(await secure.token({ podUid: 'pod-late', issuedAt: nowS() - 2 * HOUR_S }));
  expect(await ended.ask(OPEN)).toMatchObject({ type: 'rejected', code: 'UNAUTHENTICATED' });
  const attach = { type: 'attachWithSecret', session, attach: 2, secret: SECRET } as const;
  expect(await ended.ask(attach)).toMatchObject({ type: 'attached', grants: [{ name: 'late' }] });
  expect(await ended.ask({ ...lock(session, 'more'), attach: 2 })).toMatchObject({ code: 'UNAUTHENTICATED' });
  const { token } = granted;
  const release = { type: 'release', session, attach: 2, name: 'late', token, key: '', acks: [] } as const;
  expect(await ended.ask(release)).toMatchObject({ type: 'done' });
});

test('another pod of the account cannot use a stolen session, not even with its secret', async () => {
  const owner = secure.connect(await secure.token({ podUid: 'pod-owner' }));
  const session = await owner.open();
  const granted = await owner.ask(lock(session, 'stolen'));
  if (granted.type !== 'granted') throw new Error(JSON.stringify(granted));
  // Over another front end, as it comes.
  const thief = secure.connect(await secure.token({ podUid: 'pod-thief' }), {
    endpoint: secure.endpoints[1] as string,
  });
  const attempts: readonly ClientRequestBody[] = [
    { type: 'attachWithSecret', session, attach: 2, secret: SECRET },
    { type: 'release', session, attach: 1, name: 'stolen', token: granted.token, key: '', acks: [] },
    { type: 'closeSession', session, attach: 1, clean: true },
    lock(session, 'another'),
  ];
  for (const attempt of attempts) expect(await thief.ask(attempt)).toMatchObject({ code: 'SESSION_EXPIRED' });
  const view = await owner.ask({ type: 'getLock', name: 'stolen' });
  expect(view).toMatchObject({ lock: { holders: [{ token: granted.token }] } });
});

test('a consumer that is taken off the list is revoked on the running group, others are untouched', async () => {
  const [worker, other] = [
    secure.connect(await secure.token({ podUid: 'pod-stays' })),
    secure.connect(await secure.token({ account: OTHER_ACCOUNT, podUid: 'pod-goes' })),
  ];
  const [stays, goes] = [await worker.open(), await other.open()];
  const kept = await worker.ask(lock(stays, 'kept'));
  expect(await other.ask(lock(goes, 'revoked'))).toMatchObject({ type: 'granted' });
  secure.replace('namespace.yaml', manifest(['worker', 'person']));
  await eventually(() => other.notices.some(({ event }) => event.type === 'revoking'), 15_000);
  expect(await other.ask(lock(goes, 'next'))).toMatchObject({ type: 'refused', code: 'FORBIDDEN' });
  await eventually(() => other.notices.some(({ event }) => event.type === 'revoked'), 15_000);
  expect(worker.notices).toEqual([]);
  const view = await worker.ask({ type: 'getLock', name: 'kept' });
  expect(view).toMatchObject({ lock: { holders: [{ token: kept.type === 'granted' ? kept.token : 0 }] } });
  secure.replace('namespace.yaml', manifest(['worker', 'other', 'person']));
  // Each under a key of its own: a refusal stands until it is acknowledged.
  let tries = 0;
  const again = () => other.ask({ ...lock(goes, 'again'), key: `again-${tries++}` });
  await eventually(async () => (await again()).type === 'granted', 15_000);
}, 60_000);

describe('who is a replica', () => {
  async function relayAs(
    serverId: string,
    pair: { ca: string; cert: string; key: string } | null,
  ): Promise<StatusObject> {
    const config = secure.read('server-a.yaml');
    const address = /relay: (127\.0\.0\.1:[0-9]+)/.exec(config)?.[1] as string;
    const secret =
      pair === null
        ? credentials.createSsl(Buffer.from(secure.read('pki/group-ca.crt')))
        : credentials.createSsl(Buffer.from(pair.ca), Buffer.from(pair.key), Buffer.from(pair.cert));
    const client = new Client(address, secret, { 'grpc.ssl_target_name_override': `a.${GROUP_NAME}` });
    const metadata = new Metadata();
    metadata.set(SERVER_ID_HEADER, serverId);
    const call = client.makeBidiStreamRequest('/leasehold.v1.RelayService/Relay', asIs, asIs, metadata);
    call.on('error', () => undefined).on('data', () => undefined);
    const ended = await Promise.race([
      new Promise<StatusObject>((resolve) => call.on('status', resolve)),
      pause(3_000).then(() => ({ code: status.OK, details: 'it stays open', metadata })),
    ]);
    call.cancel();
    client.close();
    return ended;
  }

  const own = (id: string) => ({
    ca: secure.read('pki/group-ca.crt'),
    cert: secure.read(`pki/${id}.crt`),
    key: secure.read(`pki/${id}.key`),
  });

  test('the one that its certificate names', async () => {
    const { code } = await relayAs('b', own('b'));
    // It leads, and b itself may take its place back; or it says that it does not lead. Either way it has let this one in.
    expect([status.OK, status.ABORTED, status.FAILED_PRECONDITION]).toContain(code);
  });

  test('not another one of the group, by its claim alone', async () => {
    const { code, details } = await relayAs('c', own('b'));
    expect(code).toBe(status.PERMISSION_DENIED);
    expect(details).toContain('certificate');
  });

  test('not one of another group, of another authority, or without a certificate', async () => {
    const other = await Authority.make('another group');
    const foreign = await other.certify('b', { dns: [`b.${GROUP_NAME}`] });
    const clients = {
      ca: secure.read('pki/group-ca.crt'),
      cert: secure.read('pki/b-clients.crt'),
      key: secure.read('pki/b-clients.key'),
    };
    expect((await relayAs('b', { ...foreign, ca: clients.ca })).code).toBe(status.UNAVAILABLE);
    expect((await relayAs('b', clients)).code).toBe(status.UNAVAILABLE);
    expect((await relayAs('b', null)).code).toBe(status.UNAVAILABLE);
  });
});

test('a sidecar whose token is refused says so, and why, to its applications, its probe and its log', async () => {
  const restart = async (claims: Partial<TokenClaims>): Promise<void> => {
    secure.group.signal('sidecar', 'SIGTERM');
    await secure.group.ended('sidecar', 10_000);
    secure.replace('sidecar.token', await secure.token({ podUid: 'local-sidecar', ...claims }));
    await secure.group.start(['sidecar']);
  };
  const { apiUrl } = secure.group.plan;
  const lockUrl = `${apiUrl}/v1/locks/locks%2Frefused`;
  const acquire = () => fetch(`${lockUrl}/acquire`, { method: 'POST', body: '{"client":"test","ttl_s":5}' });
  await restart({ audience: 'vault' });
  const why = /locks refuses the identity.*another audience.*takes leasehold.*"token"/;
  for (const answer of await Promise.all([acquire(), fetch(lockUrl)])) {
    expect(answer.status).toBe(401);
    expect(await answer.json()).toMatchObject({
      code: 'UNAUTHENTICATED',
      message: expect.stringMatching(why),
    });
  }
  const probe = await fetch(`${apiUrl}/readyz`);
  expect(probe.status).toBe(200);
  expect(await probe.json()).toEqual({ ready: true, problems: [expect.stringMatching(why)] });
  const isTold = ({ msg }: Readonly<Record<string, unknown>>) =>
    msg === 'the lock server refuses the identity of this sidecar';
  const told = secure.log('sidecar').filter(isTold);
  expect(String(told[0]?.details)).toContain('another audience');
  // However often it tries: once for each server.
  expect(told.length).toBeLessThanOrEqual(3);
  // A good token is enough: nobody has to start anything again.
  secure.replace('sidecar.token', await secure.token({ podUid: 'local-sidecar' }));
  await eventually(async () => (await acquire()).status === 200, 15_000);
  expect(await (await fetch(`${apiUrl}/readyz`)).json()).toEqual({ ready: true });
}, 60_000);

describe('who administers the group from elsewhere', () => {
  const { ca, cert, key } = OPERATOR_FILES;
  const at = (server: string, files: readonly string[]) => {
    const planned = secure.group.plan.processes.find(({ name }) => name === server);
    const [withCa, withCert, withKey] = files.map((path) => join(secure.folder, path)) as [
      string,
      string,
      string,
    ];
    const endpoint = planned?.adminEndpoint as string;
    return ['--endpoint', endpoint, '--ca', withCa, '--cert', withCert, '--key', withKey];
  };

  test('the operator, through a follower as through the leader; what it changes is logged under its name', async () => {
    const leader = secure.leads() as string;
    for (const server of ['server-a', 'server-b', 'server-c']) {
      const members = await leasehold(['group', 'members', '-o', 'json', ...at(server, [ca, cert, key])]);
      expect(members.stderr).toBe('');
      expect(JSON.parse(members.stdout).members).toHaveLength(3);
    }
    const follower = ['server-a', 'server-b', 'server-c'].find((name) => name !== leader) as string;
    const made = await leasehold(['group', 'snapshot', ...at(follower, [ca, cert, key])]);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    const calls = secure.log(follower).filter(({ msg }) => msg === 'an operator calls');
    expect(calls).toMatchObject([{ identity: OPERATOR_NAME, method: '/leasehold.v1.Admin/Snapshot' }]);
  }, 60_000);

  test('not a client, not a replica, not a server of this port by its own certificate', async () => {
    for (const pair of ['a-clients', 'b']) {
      const files = [ca, `pki/${pair}.crt`, `pki/${pair}.key`];
      const foreign = await leasehold(['group', 'snapshot', ...at('server-a', files)]);
      expect(foreign).toMatchObject({
        code: 123,
        stdout: '',
        stderr: expect.stringContaining('tls.admin.ca'),
      });
    }
    const own = await leasehold([
      'group',
      'snapshot',
      ...at('server-a', [ca, 'pki/b-admin.crt', 'pki/b-admin.key']),
    ]);
    expect(own).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('no operator of this lock server'),
    });
  }, 60_000);

  test('an application finds none of it on its own port, with a good token', async () => {
    const endpoint = secure.endpoints[0] as string;
    const { credentials: trusted, options } = dialServer(secure.ca, endpoint);
    const client = new Client(endpoint, trusted, options);
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${await secure.token()}`);
    for (const method of ['Admin/Break', 'Admin/Configure', 'Inspect/Status']) {
      const ended = new Promise<StatusObject>((resolve) => {
        const call = client.makeUnaryRequest(
          `/leasehold.v1.${method}`,
          asIs,
          asIs,
          Buffer.alloc(0),
          metadata,
          () => undefined,
        );
        call.on('status', resolve);
      });
      expect((await ended).code).toBe(status.UNIMPLEMENTED);
    }
    client.close();
  });
});

describe('what is replaced while locks are held', () => {
  test('the token: the sidecar moves its sessions to a stream of the new one and loses nothing', async () => {
    const api = new LockApi(Number(new URL(secure.group.plan.apiUrl).port), 'locks');
    const session = await api.open({ ttl_s: 5 });
    const kept = api.keepAlive(session);
    const held = await api.lock('over-rotations', { session_id: session });
    // The new one is signed by a key that comes first; then the old key goes.
    const next = await TokenIssuer.make();
    const both = { keys: [...secure.issuer.keySet.keys, ...next.keySet.keys] };
    secure.replace('pki/jwks.json', JSON.stringify(both));
    await everyServer((lines) => lines.some(isReloadOf('jwks.json')));
    secure.replace('sidecar.token', await next.issue({ account: 'test/worker', podUid: 'local-sidecar' }));
    await eventually(() => secure.log('sidecar').some(isReloadOf('sidecar.token')), 10_000);
    await pause(4_000);
    secure.replace('pki/jwks.json', JSON.stringify(next.keySet));
    await everyServer((lines) => lines.filter(isReloadOf('jwks.json')).length > 1);
    // Whoever the sidecar is on goes: from here on only the new token is of use.
    for (const name of ['server-a', 'server-b', 'server-c']) {
      secure.group.signal(name, 'SIGTERM');
      await secure.group.ended(name, 10_000);
      await secure.group.start([name]);
    }
    const more = await api.lock('after-rotations', { session_id: session, wait_ms: 10_000 });
    expect(more.token).toBeGreaterThan(held.token);
    expect(await api.isHeld(held)).toBe(true);
    expect(await api.tokenOf('over-rotations')).toBe(held.token);
    expect(kept.refused).toEqual([]);
    kept.stop();
    api.end();
    secure.replace('pki/jwks.json', JSON.stringify(both));
    for (const endpoint of secure.endpoints) {
      const isTaken = async () =>
        (await secure.connect(await secure.token(), { endpoint }).ask(OPEN)).type === 'opened';
      await eventually(isTaken, 10_000);
    }
  }, 90_000);

  test('certificates: new connections see the new one, open streams stay; a broken file changes nothing', async () => {
    const client = secure.connect(await secure.token({ podUid: 'pod-certified' }));
    const session = await client.open();
    expect(await client.ask(lock(session, 'certified'))).toMatchObject({ type: 'granted' });
    const endpoint = secure.endpoints[0] as string;
    const before = await serialAt(endpoint);
    secure.replace('pki/a-clients.key', secure.read('pki/b-clients.key'));
    await eventually(
      () =>
        secure.log('server-a').some(({ msg }) => msg === 'replaced files cannot be used; the old ones stay'),
      10_000,
    );
    expect(await serialAt(endpoint)).toBe(before);
    const authority = await Authority.make('the next authority of the clients');
    const { cert, key } = await authority.certify('a', { dns: ['localhost'], ip: ['127.0.0.1'] });
    secure.replace('pki/a-clients.key', key);
    secure.replace('pki/a-clients.crt', cert);
    await eventually(async () => (await serialAt(endpoint)) !== before, 10_000);
    const dial = dialServer(Buffer.from(authority.certificate), endpoint);
    const token = await secure.token({ podUid: 'pod-new' });
    expect(await secure.connect(token, { dial }).ask(OPEN)).toMatchObject({ type: 'opened' });
    expect((await secure.connect(token).ended).code).toBe(status.UNAVAILABLE);
    expect(await client.ask({ type: 'getLock', name: 'certified' })).toMatchObject({
      lock: { holderCount: 1 },
    });
  }, 60_000);
});

const isReloadOf =
  (file: string) =>
  ({ msg, files }: Readonly<Record<string, unknown>>): boolean =>
    msg === 'replaced files are in use' && String(files).includes(file);

async function everyServer(
  isSo: (lines: readonly Readonly<Record<string, unknown>>[]) => boolean,
): Promise<void> {
  await eventually(
    () => ['server-a', 'server-b', 'server-c'].every((name) => isSo(secure.log(name))),
    10_000,
  );
}

/** Serial number of the certificate that a new connection is shown. */
function serialAt(endpoint: string): Promise<string> {
  const [host = '', port = ''] = endpoint.split(':');
  return new Promise((resolve, reject) => {
    const socket = connectTls(
      { host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] },
      () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      },
    );
    socket.on('error', reject);
  });
}
