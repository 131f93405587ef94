/**
 * Ten minutes of applications of every kind on a whole group of real processes (three etcd members, three lock servers, two sidecars) with
 * hand-overs: memory, descriptors, leases and streams stay flat, nothing is left when the applications are gone, and the exported audit
 * passes the checker. LEASEHOLD_SOAK_MS shortens it.
 */
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { leasehold, withoutProgress } from '../support/cli.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { ALIAS, ETCDS, GroupBench, SERVERS } from '../support/group/group-bench.ts';
import { Random } from '../support/random.ts';
import { inMebibytes, MEBIBYTE, type Memory, measure } from './support/measured-dev.ts';
import { PERMITS } from './support/mixed.ts';
import { type Counts, SoakWorker, TURN_NAMES } from './support/soak-worker.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));
const DURATION_MS = Number(process.env.LEASEHOLD_SOAK_MS ?? 10 * 60_000);
const WORKERS_PER_SIDECAR = 6;
const SAMPLES = 20;
/** When the leader hands over, of the whole time. */
const HAND_OVERS_AT = [0.25, 0.75];
const ENDED_MS_MAX = 30_000;
/** Caches find their size in the first half; a short run is all beginning, and is judged by what is left at its end. */
const IS_MEASURED = DURATION_MS >= 5 * 60_000;
const HEAP_GROWTH_BYTES_MAX = 12 * MEBIBYTE;
const NATIVE_GROWTH_BYTES_MAX = 48 * MEBIBYTE;
const DESCRIPTOR_GROWTH_MAX = 10;

const LIMITS = { locks: 20_000, operationsPerSecond: 1_000_000 };
const MANIFEST = {
  apiVersion: 'leasehold.dev/v1alpha1',
  kind: 'LockNamespace',
  metadata: { name: ALIAS, namespace: 'test' },
  spec: {
    safety: { class: 'Efficiency' },
    modes: ['Exclusive', 'Shared', 'Semaphore'],
    semaphores: [{ pattern: 'pool/*', permits: PERMITS }],
    lease: { ttl: '5s' },
    limits: { sessions: 20_000, operationsPerSecond: 1_000_000, perClient: LIMITS },
  },
};

/** Ports of the sidecars, whose processes and those of the servers can be measured. */
async function startMeasured(): Promise<{ bench: GroupBench; ports: number[] }> {
  const loaded = new URL('support/measure.mjs', import.meta.url).href;
  const bench = await GroupBench.start({
    sidecars: 2,
    audit: (name) => ({ sink: 'file', path: `server-${name}.ndjson` }),
    prepare: async (made) => {
      process.env.LEASEHOLD_MEASURE_FILE = join(made.folder, 'memory');
      writeFileSync(join(made.folder, 'namespace.yaml'), stringify(MANIFEST));
      for (const name of [...SERVERS, ...made.sidecars]) {
        made.replan(name, (planned) => ({ ...planned, args: [`--import=${loaded}`, ...planned.args] }));
      }
    },
  });
  delete process.env.LEASEHOLD_MEASURE_FILE;
  return { bench, ports: bench.sidecars.map((name) => Number(new URL(bench.planned(name).healthUrl).port)) };
}

async function handOver(bench: GroupBench): Promise<void> {
  const admin = new AdminClient(bench.adminSocket(await bench.leader()));
  try {
    await admin.handOver('', '');
  } finally {
    admin.close();
  }
}

/** From the middle of the second half to its end. */
function growth(samples: readonly Memory[], of: (memory: Memory) => number): number {
  const half = samples.slice(Math.floor(samples.length / 2)).map(of);
  const middle = Math.floor(half.length / 2);
  return Math.min(...half.slice(middle)) - Math.min(...half.slice(0, middle));
}

it(`a group, ${DURATION_MS / 1_000} s of mixed modes (LEASEHOLD_SEED=${seed})`, async ({
  onTestFinished,
}) => {
  const { bench, ports } = await startMeasured();
  onTestFinished(() => bench.end());
  const samples = new Map<string, Memory[]>();
  const sample = async () => {
    for (const [name, pid] of bench.pids()) {
      if (name.startsWith('etcd')) continue;
      const own = samples.get(name) ?? [];
      samples.set(name, own);
      own.push(await measure(pid, join(bench.folder, `memory.${pid}`), own.length + 1));
    }
  };
  const counts: Counts = new Map();
  const startedAt = Date.now();
  const endAt = startedAt + DURATION_MS;
  const isOver = () => Date.now() >= endAt;
  const working = Promise.all(
    Array.from({ length: WORKERS_PER_SIDECAR * ports.length }, (_, index) =>
      new SoakWorker(ports[index % ports.length] as number, new Random(seed + index), counts, ALIAS).run(
        isOver,
      ),
    ),
  );
  let handOvers = 0;
  while (!isOver()) {
    await Promise.race([working, pause(DURATION_MS / SAMPLES)]);
    await sample();
    const dueAt = HAND_OVERS_AT[handOvers] ?? Number.POSITIVE_INFINITY;
    if (Date.now() - startedAt < dueAt * DURATION_MS) continue;
    await handOver(bench);
    handOvers++;
  }
  await working;

  for (const [name, own] of samples) {
    for (const memory of own.filter((_, index) => index % 4 === 0 || index === own.length - 1))
      console.log(`${name}: ${inMebibytes(memory)}`);
  }
  console.log(`${handOvers} hand-overs; ${JSON.stringify(Object.fromEntries([...counts].toSorted()))}`);
  expect(handOvers).toBe(HAND_OVERS_AT.length);
  for (const turn of TURN_NAMES) expect(counts.get(`turn ${turn}`) ?? 0, turn).toBeGreaterThan(5);
  for (const [name, own] of IS_MEASURED ? samples : []) {
    expect(
      growth(own, ({ heapBytes }) => heapBytes),
      name,
    ).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
    expect(
      growth(own, ({ nativeBytes }) => nativeBytes),
      name,
    ).toBeLessThan(NATIVE_GROWTH_BYTES_MAX);
    expect(
      growth(own, ({ descriptors }) => descriptors),
      name,
    ).toBeLessThan(DESCRIPTOR_GROWTH_MAX);
  }

  // Who left without a word has lost everything one TTL later.
  await eventually(async () => {
    const status = await bench.status(await bench.leader());
    return status !== null && status.sessions + status.held + status.waiting === 0;
  }, ENDED_MS_MAX);
  const figures = await Promise.all(ETCDS.map((name) => bench.etcd(name).figures()));
  console.log(`etcd: ${JSON.stringify(figures)}`);
  for (const { leases } of figures) expect(leases).toBeLessThanOrEqual(SERVERS.length);
  expect(figures.reduce((sum, { streams }) => sum + streams, 0)).toBeLessThanOrEqual(SERVERS.length);
  const files = SERVERS.map((name) => join(bench.folder, `${name}.ndjson`));
  const written = files.filter((file) => existsSync(file) && readFileSync(file).length > 0);
  const checked = await leasehold(['history', 'check', ...written]);
  expect({ code: checked.code, complaints: withoutProgress(checked.stderr) }).toEqual({
    code: 0,
    complaints: '',
  });
  expect(checked.stdout).toContain('every promise was kept');
});
