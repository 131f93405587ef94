/** The configuration of a lock server: what is wrong is said at once, with its field. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { besideConfig, loadConfig, missingFiles, parseAddress } from '../config-file.ts';
import { UsageError } from '../errors.ts';
import { redacted, serverConfig, serverConfigProblems, serverFiles } from './config.ts';

const GOOD = {
  serverId: 'a',
  namespace: 'payouts.yaml',
  etcd: { endpoints: ['http://127.0.0.1:2379'] },
  listen: { clients: '127.0.0.1:1', relay: '127.0.0.1:2', health: '[::1]:3' },
  peers: { a: '127.0.0.1:2', b: '127.0.0.1:4' },
};

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-config-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function load(config: unknown) {
  const file = join(folder, 'server.yaml');
  writeFileSync(file, typeof config === 'string' ? config : stringify(config));
  return loadConfig(file, serverConfig, serverConfigProblems);
}

function problem(config: unknown): string {
  try {
    load(config);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as Error).message;
  }
  throw new Error('it was accepted');
}

test('what is left out has a default', () => {
  const config = load(GOOD);
  const quotaBytes = 2 * 1024 ** 3;
  const defaults = { prefix: 'leasehold/', leaseTtlSeconds: 5, callMs: 1_000, quotaBytes };
  expect(config.etcd).toEqual({ ...GOOD.etcd, ...defaults });
  expect(config.suspicion).toEqual({ silenceMs: 400, everyMs: 30_000 });
  expect(config.logLevel).toBe('info');
});

test('all fields that are wrong are named at once', () => {
  const text = problem({
    ...GOOD,
    serverId: 'A!',
    etcd: { endpoints: ['ftp://x'] },
    listen: { clients: 'x' },
    more: 1,
  });
  for (const field of ['serverId', 'etcd.endpoints.0', 'listen.clients', 'listen.relay', 'more']) {
    expect(text).toContain(field);
  }
});

test('each has its path, what stands there, what may, and what was probably meant', () => {
  const text = problem({
    ...GOOD,
    logLevel: 'wran',
    etcd: { endpoints: [], leaseTtlSeconds: 1, callsMs: 5, callMs: 'soon' },
    lissten: 1,
    peers: 'a',
    tls: { clients: { cert: 'c', kee: 'k' } },
    audit: { sink: 'file', path: 'x', fsync: 'never', paht: 1 },
    serverId: undefined,
    listen: { clients: '127.0.0.1', relay: '127.0.0.1:2', health: '[::1]:3' },
    buckets: ['0-9999'],
  });
  for (const line of [
    'logLevel: it is "wran", and must be debug or info or warn or error or silent; did you mean warn?',
    'etcd.endpoints: it has 0 items, and must have at least 1',
    'etcd.leaseTtlSeconds: it is 1, and must be at least 2',
    'etcd.callMs: it is "soon", and must be a number',
    'etcd.callsMs: there is no such key; did you mean callMs?',
    'lissten: there is no such key; did you mean listen?',
    'peers: it is "a", and must be a group of keys',
    'tls.clients.key: it is missing; it is a text',
    'tls.clients.kee: there is no such key; did you mean key?',
    'audit.paht: there is no such key; did you mean path?',
    'serverId: it is missing; it is a text',
    'listen.clients: it is "127.0.0.1", and must be an address, host:port',
    'buckets.0: it is "0-9999", and must be a range of buckets, from-to, within 0-4095',
  ]) {
    expect(text.split('\n  ')).toContain(line);
  }
});

test('a file that is for something else is told as that, and the keys that there are once', () => {
  const manifest = { apiVersion: 'leasehold.dev/v1alpha1', kind: 'LockNamespace' };
  expect(problem(manifest)).toMatch(/server\.yaml is a LockNamespace and no configuration/);
  const text = problem({ ...GOOD, zzz: 1, yyy: 2 });
  expect(text).toContain('zzz: there is no such key; there are serverId, namespace');
  expect(text.split('there are serverId')).toHaveLength(2);
  expect(text).toContain('yyy: there is no such key');
});

test('a kind that there is not is told like any other value', () => {
  const kinds = 'stdout or file or http or postgresql';
  expect(problem({ ...GOOD, audit: { sink: 'fil', path: 'x' } })).toContain(
    `audit.sink: it is "fil", and must be ${kinds}; did you mean file?`,
  );
  expect(problem({ ...GOOD, audit: { path: 'x' } })).toContain(`audit.sink: it is missing; it is ${kinds}`);
});

test('what a flag has put there is told as the flag’s; all bad flags at once; places of lists can be set', () => {
  const file = join(folder, 'set.yaml');
  writeFileSync(file, JSON.stringify(GOOD));
  const set = (...overrides: string[]) => loadConfig(file, serverConfig, serverConfigProblems, overrides);
  expect(() => set('logLevel=loud', 'oops', 'buckets=[')).toThrow(
    /--set oops: it is path[\s\S]*--set buckets: the value is no YAML[\s\S]*logLevel: .*\(from --set\)/,
  );
  expect(set('etcd.endpoints.0=http://127.0.0.1:9').etcd.endpoints).toEqual(['http://127.0.0.1:9']);
  expect(set('etcd.endpoints.1=http://127.0.0.1:9').etcd.endpoints).toHaveLength(2);
  expect(() => set('etcd.endpoints.7=http://127.0.0.1:9')).toThrow(
    '--set etcd.endpoints.7: 7 is no place in this list; its places are 0 to 1',
  );
});

test('files that are named and not there are told together', () => {
  const config = load({ ...GOOD, tls: { clients: { cert: 'c', key: 'k' } }, tokens: { jwks: 'set.json' } });
  writeFileSync(join(folder, 'k'), '');
  const missing = missingFiles(join(folder, 'server.yaml'), serverFiles(config));
  expect(missing.map((line) => line.split(':')[0])).toEqual(['namespace', 'tls.clients.cert', 'tokens.jwks']);
  expect(missing[0]).toBe(`namespace: there is no file ${join(folder, 'payouts.yaml')}`);
});

test('so is all that is wrong between fields', () => {
  const text = problem({
    ...GOOD,
    etcd: { endpoints: ['http://x', 'http://x'], prefix: 'p' },
    listen: { ...GOOD.listen, relay: GOOD.listen.clients },
    peers: { b: '127.0.0.1:4', c: '127.0.0.1:4' },
  });
  for (const words of [
    'this server itself',
    'two replicas',
    'used twice',
    'there twice',
    'ends in a slash',
  ]) {
    expect(text).toContain(words);
  }
});

test('a file that is not there, or no YAML, is wrong usage', () => {
  expect(() => loadConfig(join(folder, 'no.yaml'), serverConfig, serverConfigProblems)).toThrow(UsageError);
  expect(() => loadConfig(join(folder, 'no.yaml'), serverConfig, serverConfigProblems)).toThrow(
    'no.yaml cannot be read: there is no such file',
  );
  expect(() => loadConfig(folder, serverConfig, serverConfigProblems)).toThrow('it is a folder');
  expect(problem('a: [')).toContain('cannot be read');
  expect(problem('')).toContain('not valid');
});

test('an address keeps its port; a path is beside the file; a password is not shown', () => {
  expect(parseAddress('[::1]:3')).toEqual({ host: '::1', port: 3 });
  expect(parseAddress('locks.example:7100')).toEqual({ host: 'locks.example', port: 7100 });
  expect(problem({ ...GOOD, listen: { ...GOOD.listen, health: 'x:70000' } })).toContain('listen.health');
  expect(besideConfig('/etc/x/server.yaml', 'a.yaml')).toBe('/etc/x/a.yaml');
  const shown = JSON.stringify(
    redacted(serverConfig.parse({ ...GOOD, etcd: { endpoints: ['http://u:secret@h:1'] } })),
  );
  expect(shown).not.toContain('secret');
  expect(shown).toContain('@h:1');
});

test('what is wrong is told without the secrets that stand there', () => {
  const audit = (differs: object) => ({ ...GOOD, audit: { sink: 'http', url: 'http://h/', ...differs } });
  const twice = 'http://u:secret@h:1';
  for (const [field, config] of [
    ['etcd.endpoints.0', { ...GOOD, etcd: { endpoints: ['ftp://u:secret@h:1'] } }],
    ['etcd.endpoints', { ...GOOD, etcd: { endpoints: [twice, twice] }, insecure: true }],
    [
      'a user or password is not sent (http://redacted:redacted@h:1',
      { ...GOOD, etcd: { endpoints: [twice] } },
    ],
    ['audit.url', { ...GOOD, audit: { sink: 'postgresql', url: 'postgres://u:x/secret@h/d' } }],
    ['audit.url', audit({ url: 'h//x?key=secret' })],
    ['audit.headers.authorization', audit({ headers: { authorization: 'Bearer secret\nmore' } })],
    ['audit.headers.authorization', audit({ headers: { authorization: ['secret'] } })],
    ['cannot be read', 'audit: {url: "postgres://u:secret@h/d}\nserverId: [\n'],
  ] as const) {
    const text = problem(config);
    expect(text).toContain(field);
    expect(text).not.toContain('secret');
  }
  expect(problem('a: 1\nb: [\n')).toMatch(/at line 3, column 1$/);
  expect(load(audit({ headers: { authorization: 'Bearer secret\n' } })).audit).toBeDefined();
});

test('plain text and unproven clients are for this machine alone, unless it is said that they are meant', () => {
  const open = {
    ...GOOD,
    etcd: { endpoints: ['http://etcd.example:2379'] },
    listen: { clients: '0.0.0.0:1', relay: '10.0.0.1:2', health: '0.0.0.0:3' },
    peers: { a: 'a.example:2', b: 'b.example:4' },
  };
  const text = problem(open);
  for (const field of ['listen.relay', 'peers.b', 'etcd.endpoints', 'listen.clients', 'tokens']) {
    expect(text).toMatch(new RegExp(`${field}.*insecure: true`));
  }
  expect(load({ ...open, insecure: true }).insecure).toBe(true);
  const pair = { cert: 'c', key: 'k' };
  const secure = {
    ...open,
    etcd: { endpoints: ['https://etcd.example:2379'] },
    tls: { group: { ca: 'ca', ...pair }, clients: pair },
    tokens: { jwks: 'j' },
  };
  expect(load(secure).tokens).toEqual({ jwks: 'j', audience: 'leasehold', people: [] });
  for (const left of ['tls', 'tokens'] as const)
    expect(problem({ ...secure, [left]: undefined })).toContain(left);
  expect(problem({ ...secure, etcd: { endpoints: ['https://10.0.0.7:1'] } })).toContain('etcd.serverName');
  expect(problem({ ...secure, tokens: { jwks: 'j', people: ['no account'] } })).toContain('tokens.people.0');
});

test('operators elsewhere prove who they are, whatever else is left open', () => {
  const listen = { ...GOOD.listen, admin: '0.0.0.0:5' };
  const bare = problem({ ...GOOD, listen, insecure: true });
  expect(bare).toMatch(/listen\.admin: .*give tls\.admin/);
  expect(bare).toMatch(/listen\.admin: nobody may call.*admin\.administrators/);
  const tls = { admin: { ca: 'ca', cert: 'c', key: 'k' } };
  const admin = { administrators: ['operator.leasehold'], readers: ['spiffe://cluster.local/ns/a/sa/b'] };
  expect(load({ ...GOOD, listen, tls, admin }).admin).toEqual(admin);
  expect(problem({ ...GOOD, tls, admin })).toMatch(
    /admin: .*listen\.admin, which is missing\n.*tls\.admin: .*missing/,
  );
  expect(problem({ ...GOOD, listen, tls, admin: { administrators: ['a', 'a', 'B, C'] } })).toContain(
    'administrators.2',
  );
  expect(problem({ ...GOOD, listen, tls, admin: { administrators: ['a'], readers: ['a'] } })).toContain(
    'a is listed twice',
  );
});

test('buckets are ranges within those that there are', () => {
  expect(load({ ...GOOD, buckets: ['0-2047', '4095-4095'], mapVersion: 3 }).mapVersion).toBe(3);
  for (const bad of ['2-1', '0-4096', '5', '-1-4'])
    expect(problem({ ...GOOD, buckets: [bad] })).toContain('0-4095');
});

test('flags win over the file and are checked with it; a flag that is none says what it should be', () => {
  const file = join(folder, 'set.yaml');
  writeFileSync(file, JSON.stringify(GOOD));
  const set = (...overrides: string[]) => loadConfig(file, serverConfig, serverConfigProblems, overrides);
  const config = set(
    'etcd.leaseTtlSeconds=7',
    'logLevel=debug',
    'admin.socket=/run/a.sock',
    'buckets=["0-9"]',
  );
  expect(config).toMatchObject({ logLevel: 'debug', admin: { socket: '/run/a.sock' }, buckets: ['0-9'] });
  expect(config.etcd).toMatchObject({ endpoints: GOOD.etcd.endpoints, leaseTtlSeconds: 7 });
  expect(() => set('etcd.leaseTtlSeconds=1')).toThrow('etcd.leaseTtlSeconds');
  expect(() => set('serverId=nobody')).toThrow('peers: nobody, this server itself, is missing');
  expect(() => set('lease=5')).toThrow('lease');
  expect(() => set('logLevel')).toThrow('--set logLevel: it is path.to.key=value');
  expect(() => set('buckets=[')).toThrow('--set buckets: the value is no YAML');
});
