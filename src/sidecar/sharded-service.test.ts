/** A namespace over two lock groups, for applications one: real servers on virtual time, each with half of the names. */
import { beforeEach, describe, expect, test } from 'vitest';
import { namespaceConfig } from '../../test/support/core.ts';
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import { LeaseholdError } from '../api/errors.ts';
import { BUCKETS } from '../api/limits.ts';
import { bucketOf } from '../api/names.ts';
import { MemoryLog } from '../log/memory-log.ts';
import { MemoryStore } from '../log/memory-store.ts';
import { silentSidecarMetrics } from '../platform/metrics.fixture.ts';
import { Replica } from '../server/member/replica.ts';
import type { StreamLine } from './service.ts';
import { ShardedService, shardAlias } from './sharded-service.ts';
import { Sidecar } from './sidecar.ts';
import { MemoryStateStore } from './state-store.ts';

const HALF = BUCKETS / 2;
const ANSWER_MS_MAX = 10_000;
const GROUPS = ['low', 'high'] as const;
type Group = (typeof GROUPS)[number];

const half = (bucket: number): Group => (bucket < HALF ? 'low' : 'high');
/** Names by the half that they fall into. */
const NAMES = Map.groupBy(
  Array.from({ length: 40 }, (_, at) => `job-${at}`),
  (name) => half(bucketOf(name)),
);
const LOW = NAMES.get('low')?.[0] as string;
const HIGH = NAMES.get('high')?.[0] as string;

let runtime: VirtualRuntime;
let service: ShardedService;
let replicas: Record<Group, Replica>;
/** Which group really serves a bucket. */
let servedBy: (bucket: number) => Group | null;
let sessionId: string;

beforeEach(async () => {
  runtime = new VirtualRuntime();
  servedBy = half;
  const started = GROUPS.map(async (group) => {
    const { timers, random } = runtime;
    const log = new MemoryLog(new MemoryStore(group), { timers, random, latencyMs: () => 1 });
    const shard = () => ({ mapVersion: 2, serves: (bucket: number) => servedBy(bucket) === group });
    const config = namespaceConfig({ ttlMs: 5_000 });
    const starting = Replica.start({
      runtime,
      log,
      serverId: group,
      config,
      shard,
      onStopped: () => undefined,
    });
    return [group, await runtime.until(starting, ANSWER_MS_MAX)] as const;
  });
  replicas = Object.fromEntries(await Promise.all(started)) as Record<Group, Replica>;
  const sidecar = new Sidecar({ runtime, store: new MemoryStateStore() });
  for (const group of GROUPS) {
    sidecar.addNamespace({
      alias: shardAlias('jobs', group),
      connect: (handler) =>
        replicas[group].frontEnd.connect({ account: 'dev/developer', podUid: '' }, handler),
      metrics: silentSidecarMetrics,
      defaults: () => ({ ttlMs: 5_000, maxHoldMs: 3_600_000 }),
    });
  }
  const shards = GROUPS.map((group) => ({
    alias: 'jobs',
    group,
    serves: (bucket: number) => half(bucket) === group,
  }));
  service = new ShardedService(sidecar, runtime, shards);
  const opening = service.openSession({ client: 'test', ttlMs: 60_000, keepalive: 'app' });
  sessionId = (await runtime.until(opening, ANSWER_MS_MAX)).sessionId;
});

function until<T>(asking: Promise<T>): Promise<T> {
  return runtime.until(asking, ANSWER_MS_MAX);
}

function acquire(name: string, waitMs = 0) {
  const options = {
    sessionId,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    waitMs,
    purpose: '',
  } as const;
  return until(service.acquire(`jobs/${name}`, { ...options, hangUp: new AbortController().signal }));
}

async function refusal(asking: Promise<unknown>): Promise<LeaseholdError> {
  const outcome = await until(
    asking.then(
      () => null,
      (error: unknown) => error,
    ),
  );
  if (!(outcome instanceof LeaseholdError)) throw new Error('it was not refused');
  return outcome;
}

async function heldIn(group: Group): Promise<readonly string[]> {
  const result = await until(replicas[group].read({ type: 'listLocks', prefix: '', after: '', limit: 100 }));
  if (result.type !== 'locks') throw new Error('not listed');
  return result.locks.map(({ name }) => name);
}

test('each name is locked in the group of its bucket, in one session of the application', async () => {
  await acquire(LOW);
  await acquire(HIGH);
  expect([await heldIn('low'), await heldIn('high')]).toEqual([[LOW], [HIGH]]);
  await until(service.closeSession(sessionId));
  expect([await heldIn('low'), await heldIn('high')]).toEqual([[], []]);
});

describe('when a bucket is served by another group than the map says', () => {
  beforeEach(() => {
    servedBy = () => 'high';
  });

  test('the application gets its lock all the same, and the way is remembered', async () => {
    const { token } = await acquire(LOW);
    expect(await heldIn('high')).toEqual([LOW]);
    expect(service.held(`jobs/${LOW}`, token).held).toBe(true);
    const view = await until(service.getLock(`jobs/${LOW}`));
    expect(view).toMatchObject({ name: `jobs/${LOW}`, holders: [{ token }] });
    await until(service.renew(`jobs/${LOW}`, { sessionId, token }));
    expect(await until(service.release(`jobs/${LOW}`, { sessionId, token }))).toEqual({ already: false });
    expect(await heldIn('high')).toEqual([]);
  });

  test('what was granted before is renewed and given back where it is', async () => {
    servedBy = half;
    const { token } = await acquire(LOW);
    servedBy = () => 'high';
    expect(await until(service.renew(`jobs/${LOW}`, { sessionId, token }))).toMatchObject({ token });
    expect(await until(service.release(`jobs/${LOW}`, { sessionId, token }))).toEqual({ already: false });
    expect(await heldIn('low')).toEqual([]);
  });
});

test('while no group serves a name it waits as long as the call may, then the service is unavailable', async () => {
  servedBy = () => null;
  const error = await refusal(acquire(LOW));
  expect(error.code).toBe('UNAVAILABLE');
  expect(JSON.stringify([error.message, error.details])).not.toMatch(/WRONG|~/);
  const waiting = acquire(HIGH, 3_000);
  runtime.timers.after(1_000, () => {
    servedBy = half;
  });
  expect((await waiting).token).toBeGreaterThan(0);
});

test('names, lines and errors never show the groups', async () => {
  const lines: StreamLine[] = [];
  service.openEvents(sessionId, (line) => lines.push(line));
  const { token } = await acquire(HIGH);
  expect(lines).toMatchObject([{ event: 'granted', name: `jobs/${HIGH}`, token }]);
  expect(service.aliases()).toEqual(['jobs']);
  const error = await refusal(acquire(HIGH));
  expect(error).toMatchObject({ code: 'HELD', details: { name: `jobs/${HIGH}` } });
  expect((await refusal(service.getLock(`${shardAlias('jobs', 'low')}/x`))).code).toBe('INVALID');
});

test('a list is one list, page by page', async () => {
  const names = [...(NAMES.get('low') ?? []).slice(0, 5), ...(NAMES.get('high') ?? []).slice(0, 5)].sort();
  for (const name of names) await acquire(name);
  const seen: string[] = [];
  for (let after: string | undefined; ; ) {
    const options = { prefix: 'jobs/job', limit: 3, ...(after === undefined ? {} : { after }) };
    const { locks, next } = await until(service.listLocks(options));
    seen.push(...locks.map(({ name }) => name));
    if (next === undefined) break;
    after = next;
  }
  expect(seen).toEqual(names.map((name) => `jobs/${name}`));
  expect((await refusal(service.listLocks({ prefix: 'else/', limit: 3 }))).code).toBe('NAMESPACE_NOT_FOUND');
});
