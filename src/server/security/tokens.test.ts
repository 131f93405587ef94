/** ServiceAccount tokens, each with one thing wrong. The issuer is the test's own. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as jose from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { LeaseholdError } from '../../api/errors.ts';
import { TOKEN_LEEWAY_MS } from '../front-end/admission.ts';
import { TOKEN_LIFE_S_MAX, TokenVerifier, watchKeys } from './tokens.ts';

const POD = { name: 'worker-1', uid: 'pod-1' };
const KUBERNETES = { namespace: 'payments', serviceaccount: { name: 'payout-worker', uid: 'u' }, pod: POD };
const POLICY = { audience: 'leasehold', issuer: 'https://issuer', people: ['payments/person'] };

let folder = '';
let path = '';
let runtime: VirtualRuntime;
let nowS = 0;
let keys: { privateKey: jose.CryptoKey; publicKey: jose.CryptoKey };

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-tokens-'));
  path = join(folder, 'jwks.json');
  runtime = new VirtualRuntime();
  nowS = Math.floor(runtime.clock.wallMs() / 1_000);
  keys = await jose.generateKeyPair('ES256');
  await writeKeys([keys.publicKey]);
});

afterEach(() => rmSync(folder, { recursive: true }));

async function writeKeys(all: readonly jose.CryptoKey[]): Promise<void> {
  const set = await Promise.all(all.map(async (key) => ({ ...(await jose.exportJWK(key)), alg: 'ES256' })));
  writeFileSync(path, JSON.stringify({ keys: set }));
}

function token(
  claims: jose.JWTPayload = {},
  key: jose.CryptoKey | Uint8Array = keys.privateKey,
  alg = 'ES256',
) {
  const all = {
    iss: 'https://issuer',
    aud: ['leasehold'],
    sub: 'system:serviceaccount:payments:payout-worker',
    iat: nowS,
    nbf: nowS,
    exp: nowS + 600,
    'kubernetes.io': KUBERNETES,
    ...claims,
  };
  return new jose.SignJWT(JSON.parse(JSON.stringify(all))).setProtectedHeader({ alg }).sign(key);
}

const verifier = () => new TokenVerifier(watchKeys(path, runtime), runtime.clock, POLICY);

async function refusal(authorization: string | undefined): Promise<string> {
  const error: LeaseholdError = await verifier()
    .verify(authorization)
    .then(
      () => Promise.reject(new Error('it was taken')),
      (refused: LeaseholdError) => refused,
    );
  expect(error.code).toBe('UNAUTHENTICATED');
  return error.message;
}

test('a good one proves account and pod, until it ends', async () => {
  expect(await verifier().verify(`Bearer ${await token()}`)).toEqual({
    identity: { account: 'payments/payout-worker', podUid: 'pod-1' },
    untilMs: (nowS + 600) * 1_000 + TOKEN_LEEWAY_MS,
  });
});

test('one that has ended proves who it was, for a day', async () => {
  const times = (endedS: number) => ({
    iat: nowS - endedS - 600,
    nbf: nowS - endedS - 600,
    exp: nowS - endedS,
  });
  const { untilMs } = await verifier().verify(`Bearer ${await token(times(3_600))}`);
  expect(untilMs).toBe((nowS - 3_600) * 1_000 + TOKEN_LEEWAY_MS);
  expect(await refusal(`Bearer ${await token(times(25 * 3_600))}`)).toContain('ended at');
  // Ended or not, it must be good in all else.
  expect(await refusal(`Bearer ${await token({ ...times(3_600), aud: 'vault' })}`)).toContain('audience');
});

test('one with times that are none, issued in the future, or with a name without end', async () => {
  const refused = async (claims: jose.JWTPayload) => refusal(`Bearer ${await token(claims)}`);
  expect(await refused({ iat: -1e300, exp: -1e300 })).toContain('no possible time');
  expect(await refused({ exp: 1e300 })).toContain('no possible time');
  const inTenYears = nowS + 315_360_000;
  expect(await refused({ iat: inTenYears, exp: inTenYears + 60 })).toContain('issued in the future');
  const long = { ...KUBERNETES, pod: { name: 'p', uid: 'u'.repeat(10_000) } };
  expect(await refused({ 'kubernetes.io': long })).toContain('too long');
});

test.each<[string, jose.JWTPayload, RegExp]>([
  ['of another audience', { aud: ['vault'] }, /another audience; this lock server takes leasehold/],
  ['without an audience', { aud: undefined } as unknown as jose.JWTPayload, /audience/],
  ['of another issuer', { iss: 'https://else' }, /another issuer; this lock server takes https:\/\/issuer/],
  ['not begun', { nbf: 4_000_000_000 }, /not valid yet/],
  ['that lives too long', { exp: 4_000_000_000 }, /lives for [0-9]+ s and may for 3600 s/],
  ['without an end', { exp: undefined } as unknown as jose.JWTPayload, /when it begins and ends/],
  ['without a beginning', { iat: undefined } as unknown as jose.JWTPayload, /when it begins and ends/],
  ['of no ServiceAccount', { 'kubernetes.io': undefined }, /no ServiceAccount token/],
  ['whose subject is another account', { sub: 'system:serviceaccount:kube-system:admin' }, /another account/],
  [
    'without a pod',
    { 'kubernetes.io': { ...KUBERNETES, pod: undefined } },
    /payments\/payout-worker is bound to no pod/,
  ],
])('one %s is refused, and why', async (_what, claims, reason) => {
  expect(await refusal(`Bearer ${await token(claims)}`)).toMatch(reason);
});

test('an hour is not too long, a second more is', async () => {
  const life = (seconds: number) => token({ exp: nowS + seconds });
  await expect(verifier().verify(`Bearer ${await life(TOKEN_LIFE_S_MAX)}`)).resolves.toBeDefined();
  expect(await refusal(`Bearer ${await life(TOKEN_LIFE_S_MAX + 1)}`)).toContain('3601 s');
});

test('a person needs no pod; with one it is a pod like any other', async () => {
  const serviceaccount = { name: 'person', uid: 'u' };
  const claims = { sub: 'system:serviceaccount:payments:person' };
  const bare = await token({ ...claims, 'kubernetes.io': { namespace: 'payments', serviceaccount } });
  const { identity } = await verifier().verify(`Bearer ${bare}`);
  expect(identity).toEqual({ account: 'payments/person', podUid: '' });
  const inPod = await token({
    ...claims,
    'kubernetes.io': { namespace: 'payments', serviceaccount, pod: POD },
  });
  expect((await verifier().verify(`Bearer ${inPod}`)).identity.podUid).toBe('pod-1');
});

test('a signature of another key, none at all, or one by a shared secret is worth nothing', async () => {
  const other = await jose.generateKeyPair('ES256');
  expect(await refusal(`Bearer ${await token({}, other.privateKey)}`)).toContain('signed by nobody');
  const secret = new TextEncoder().encode(JSON.stringify(await jose.exportJWK(keys.publicKey)));
  expect(await refusal(`Bearer ${await token({}, secret, 'HS256')}`)).toMatch(
    /cannot be read|signed by nobody/,
  );
  const [header = '', payload = ''] = (await token()).split('.');
  const none = Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url');
  expect(await refusal(`Bearer ${none}.${payload}.`)).toMatch(/cannot be read|signed by nobody/);
  expect(await refusal(`Bearer ${header}.${payload}.AAAA`)).toMatch(/cannot be read|signed by nobody/);
});

test('without a token, or with what cannot be one', async () => {
  for (const header of [
    undefined,
    '',
    'Basic dTpw',
    'Bearer',
    'Bearer a b',
    `Bearer ${'a'.repeat(20_000)}`,
  ]) {
    expect(await refusal(header)).toContain('no token was sent');
  }
});

test('replaced keys count from then on; a file without good keys changes nothing', async () => {
  const watched = watchKeys(path, runtime);
  const long = new TokenVerifier(watched, runtime.clock, POLICY);
  const next = await jose.generateKeyPair('ES256');
  await writeKeys([next.publicKey]);
  await runtime.pass(1_000);
  await expect(long.verify(`Bearer ${await token({}, next.privateKey)}`)).resolves.toBeDefined();
  await expect(long.verify(`Bearer ${await token()}`)).rejects.toThrow('signed by nobody');
  const secret = await jose.generateSecret('HS256', { extractable: true });
  for (const bad of ['{', '{"keys":[]}', JSON.stringify({ keys: [await jose.exportJWK(secret)] })]) {
    writeFileSync(path, bad);
    await runtime.pass(1_000);
    await expect(long.verify(`Bearer ${await token({}, next.privateKey)}`)).resolves.toBeDefined();
    expect(() => watchKeys(path, runtime)).toThrow();
  }
  // What was taken is told as well, at a level that is not kept here.
  expect(runtime.logged).toHaveLength(3);
  watched.close();
});
