/**
 * One sidecar process on two lock groups with TLS and tokens, a namespace of its own on each and one that both share (rule A6): loss is per
 * group, a restart keeps what is held in both (rule A4), and who does not serve a name says so and is not asked for it again.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { ensureEtcd } from '../../scripts/etcd.mjs';
import { BUCKETS } from '../../src/api/limits.ts';
import { bucketOf } from '../../src/api/names.ts';
import { LocalGroup } from '../../src/cli/group/local-group.ts';
import { CLIENTS_CA, TOKEN_FILE } from '../../src/cli/group/security.ts';
import { eventually, type Held, LockApi } from '../support/dev/lock-api.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { manifest } from '../support/group/secure-group.ts';

/** Over the restart of both groups, one after the other, on a busy machine. */
const TTL_S = 20;
const SERVES_MS_MAX = 20_000;
/** Two members are a majority, and one lock server of each group is enough for what is shown here. */
const PROCESSES = ['etcd-a', 'etcd-b', 'server-a'];
const LOW = [`0-${BUCKETS / 2 - 1}`];
const HIGH = [`${BUCKETS / 2}-${BUCKETS - 1}`];

const folder = mkdtempSync(join(tmpdir(), 'leasehold-groups-'));
let one: LocalGroup;
let two: LocalGroup;
/** Of group one alone, of group two alone, of both together. */
let apis: { readonly pay: LockApi; readonly stock: LockApi; readonly both: LockApi };
let session: string;
let keepalives: { readonly refused: string[]; stop(): void };
let held: { readonly pay: Held; readonly stock: Held; readonly low: Held; readonly high: Held };

/** `issuer`: of the group whose tokens it takes; both take the same ones. */
async function makeGroup(name: string, buckets: readonly string[], issuer: string): Promise<LocalGroup> {
  return LocalGroup.make({
    folder: join(folder, name),
    alias: name,
    manifest: manifest(['worker']),
    etcd: await ensureEtcd(),
    etcdFlags: ['--unsafe-no-fsync'],
    node: process.execPath,
    leasehold: join(import.meta.dirname, '../../src/cli/main.ts'),
    security: { account: 'test/worker', groupName: `${name}.test` },
    server: { tokens: { jwks: join(folder, issuer, 'pki/jwks.json') }, buckets },
    leaseTtlSeconds: 2,
  });
}

const endpointOf = ({ plan }: LocalGroup): string => plan.endpoints[0] as string;

/** In place of the sidecar of group one alone. */
function planSidecar(): number {
  const path = join(folder, 'one', 'sidecar.yaml');
  const { port, data } = parse(readFileSync(path, 'utf8')) as { port: number; data: string };
  const authorities = ['one', 'two'].map((name) => readFileSync(join(folder, name, CLIENTS_CA), 'utf8'));
  writeFileSync(join(folder, 'one', 'authorities.crt'), authorities.join('\n'));
  const [first, second] = [{ endpoints: [endpointOf(one)] }, { endpoints: [endpointOf(two)] }];
  const groups = [
    { name: 'one', buckets: LOW, ...first },
    { name: 'two', buckets: HIGH, ...second },
  ];
  const namespaces = [
    { alias: 'pay', ...first },
    { alias: 'stock', ...second },
    { alias: 'both', groups },
  ].map((namespace) => ({ ...namespace, ttl: `${TTL_S}s` }));
  writeFileSync(path, stringify({ port, data, ca: 'authorities.crt', token: TOKEN_FILE, namespaces }));
  return port;
}

beforeAll(async () => {
  [one, two] = [await makeGroup('one', LOW, 'one'), await makeGroup('two', HIGH, 'one')];
  await Promise.all([one, two].map((group) => group.start(PROCESSES)));
  const port = planSidecar();
  await one.start(['sidecar']);
  const [pay, stock, both] = ['pay', 'stock', 'both'].map((alias) => new LockApi(port, alias)) as [
    LockApi,
    LockApi,
    LockApi,
  ];
  apis = { pay, stock, both };
}, ETCD_START_MS_MAX);

afterAll(async () => {
  keepalives?.stop();
  for (const api of Object.values(apis ?? {})) api.end();
  await one?.stop();
  await two?.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** A name that the first or the second half of the buckets holds. */
function nameIn(half: 'low' | 'high', stem: string): string {
  for (let at = 0; ; at++) {
    const name = `${stem}-${at}`;
    if (bucketOf(name) < BUCKETS / 2 === (half === 'low')) return name;
  }
}

const lock = (api: LockApi, half: 'low' | 'high', stem: string, wait_ms = 10_000): Promise<Held> =>
  api.lock(nameIn(half, stem), { session_id: session, wait_ms });

async function beliefs(): Promise<Record<keyof typeof held, boolean>> {
  const { pay, stock, both } = apis;
  return {
    pay: await pay.isHeld(held.pay),
    low: await both.isHeld(held.low),
    stock: await stock.isHeld(held.stock),
    high: await both.isHeld(held.high),
  };
}

const ALL = { pay: true, low: true, stock: true, high: true };

test('one session holds locks of both groups, by aliases that exist only here', async () => {
  await eventually(
    async () => (await apis.pay.acquire(nameIn('low', 'first'), { wait_ms: 1_000 })).status === 200,
    SERVES_MS_MAX,
  );
  session = await apis.pay.open({ ttl_s: TTL_S });
  keepalives = apis.pay.keepAlive(session);
  held = {
    pay: await lock(apis.pay, 'low', 'invoice'),
    stock: await lock(apis.stock, 'high', 'shelf'),
    low: await lock(apis.both, 'low', 'shared'),
    high: await lock(apis.both, 'high', 'shared'),
  };
  expect(await beliefs()).toEqual(ALL);
  // A shared name lies in the group that its bucket says: the other namespace of that group has it too.
  expect(await apis.pay.tokenOf(held.low.name)).toBe(held.low.token);
  expect(await apis.stock.tokenOf(held.high.name)).toBe(held.high.token);
}, 60_000);

test('the sidecar is killed and started again: the session goes on in both groups, with the same tokens (rule A4)', async () => {
  one.signal('sidecar', 'SIGKILL');
  await one.ended('sidecar', 5_000);
  const sinceMs = performance.now();
  await one.start(['sidecar']);
  await eventually(async () => (await apis.pay.keepalive(session)).status === 200, SERVES_MS_MAX);
  await eventually(async () => Object.values(await beliefs()).every(Boolean), SERVES_MS_MAX);
  console.log(`held in both groups ${Math.round(performance.now() - sinceMs)} ms after the start`);
  // It holds still what the groups have granted before.
  expect(await apis.pay.tokenOf(held.pay.name)).toBe(held.pay.token);
  expect(await apis.stock.tokenOf(held.stock.name)).toBe(held.stock.token);
}, 60_000);

test('one group is away for longer than a TTL: what it granted is lost, the rest is held, and the session goes on', async () => {
  two.signal('server-a', 'SIGKILL');
  await two.ended('server-a', 5_000);
  await eventually(async () => !(await apis.stock.isHeld(held.stock)), 2 * TTL_S * 1_000);
  await eventually(async () => !(await apis.both.isHeld(held.high)), 2 * TTL_S * 1_000);
  expect(await beliefs()).toEqual({ ...ALL, stock: false, high: false });
  expect((await apis.stock.acquire(nameIn('high', 'more'), { session_id: session })).body.code).toBe(
    'UNAVAILABLE',
  );
  await apis.pay.release(await lock(apis.pay, 'low', 'meanwhile'));
  const sinceMs = performance.now();
  await two.start(['server-a']);
  const again = await lock(apis.stock, 'high', 'shelf', 30_000);
  console.log(
    `the group that was away grants again ${Math.round(performance.now() - sinceMs)} ms after its start`,
  );
  expect(again.token).toBeGreaterThan(held.stock.token);
  expect(await beliefs()).toEqual({ ...ALL, stock: false, high: false });
  held = { ...held, stock: again, high: await lock(apis.both, 'high', 'shared', 30_000) };
  expect(await beliefs()).toEqual(ALL);
}, 90_000);

test('the groups serve other names from now on: whoever is asked wrongly says so, and the other one is asked', async () => {
  for (const [name, group, buckets] of [
    ['one', one, HIGH],
    ['two', two, LOW],
  ] as const) {
    const path = join(folder, name, 'server-a.yaml');
    writeFileSync(path, stringify({ ...parse(readFileSync(path, 'utf8')), buckets, mapVersion: 2 }));
    group.signal('server-a', 'SIGTERM');
    await group.ended('server-a', 10_000);
    await group.start(['server-a']);
  }
  const moved = await lock(apis.both, 'low', 'moved', 30_000);
  // The sidecar still thinks that group one has it.
  const soon = { timeout: SERVES_MS_MAX };
  // Each alias has its own stream, which finds the server again in its own time.
  await expect.poll(() => apis.stock.tokenOf(moved.name).catch(() => null), soon).toBe(moved.token);
  const refusal = async () => (await apis.pay.acquire(moved.name, { session_id: session })).body;
  await expect
    .poll(refusal, soon)
    .toMatchObject({ code: 'UNAVAILABLE', message: 'no lock group serves this name right now' });
  // What was granted before is kept, and given back where it was granted.
  expect(await apis.both.isHeld(held.low)).toBe(true);
  expect((await apis.both.release(held.low)).status).toBe(200);
  expect((await apis.both.release(moved)).status).toBe(200);
  // But for the moment in which the sidecar itself was down.
  expect(keepalives.refused.filter((refusal) => !/ECONN|socket hang up/.test(refusal))).toEqual([]);
}, 90_000);
