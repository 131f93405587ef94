/**
 * Ten minutes of applications of every kind and mode on one `leasehold dev`: memory and descriptors stay flat, nothing is
 * answered 5xx (but for UNAVAILABLE on a busy machine), nothing is said on stderr, and nothing is left when they are gone. LEASEHOLD_SOAK_MS shortens it.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { Workspace } from '../support/dev/workspace.ts';
import { Random } from '../support/random.ts';
import { inMebibytes, MEBIBYTE, MeasuredDev, type Memory } from './support/measured-dev.ts';
import { writeMixed } from './support/mixed.ts';
import { type Counts, SoakWorker, TURN_NAMES } from './support/soak-worker.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));
const DURATION_MS = Number(process.env.LEASEHOLD_SOAK_MS ?? 10 * 60_000);
const WORKERS = 24;
const SAMPLES = 60;
const ENDED_MS_MAX = 30_000;
const UNAVAILABLE_SHARE_MAX = 0.01;
/** Median of the last quarter against that of the second, when caches and heap have found their size. */
const HEAP_GROWTH_BYTES_MAX = 8 * MEBIBYTE;
const RSS_GROWTH_BYTES_MAX = 24 * MEBIBYTE;
const DESCRIPTOR_GROWTH_MAX = 10;

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** From the median of the second quarter to that of the last. */
function growth(samples: readonly Memory[], of: (memory: Memory) => number): number {
  const quarter = Math.floor(samples.length / 4);
  const values = samples.map(of);
  return median(values.slice(-quarter)) - median(values.slice(quarter, 2 * quarter));
}

it(`${DURATION_MS / 1_000} s of mixed modes (LEASEHOLD_SEED=${seed})`, async ({ onTestFinished }) => {
  const workspace = new Workspace();
  writeMixed(workspace, { name: 'mixed', limits: { sessions: 20_000 } });
  const dev = await MeasuredDev.start(workspace);
  const api = new LockApi(dev.process.port, 'mixed');
  onTestFinished(async () => {
    api.end();
    if (!dev.process.hasExited) await dev.process.kill();
    workspace.remove();
  });
  const counts: Counts = new Map();
  const endAt = Date.now() + DURATION_MS;
  const isOver = () => Date.now() >= endAt;
  const workers = Array.from({ length: WORKERS }, (_, index) =>
    new SoakWorker(dev.process.port, new Random(seed + index), counts).run(isOver),
  );
  const working = Promise.all(workers);
  const samples: Memory[] = [];
  while (!isOver()) {
    // A worker that fails ends the run at once.
    await Promise.race([working, pause(DURATION_MS / SAMPLES)]);
    samples.push(await dev.memory());
  }
  await working;

  for (const memory of samples.filter((_, index) => index % 6 === 0)) console.log(inMebibytes(memory));
  console.log(JSON.stringify(Object.fromEntries([...counts].toSorted())));
  const answers = [...counts].filter(([what]) => /\d{3}$/.test(what));
  const sum = (entries: typeof answers) => entries.reduce((total, [, count]) => total + count, 0);
  const unavailable = sum(answers.filter(([what]) => what.endsWith(' 503')));
  expect(unavailable).toBeLessThanOrEqual(sum(answers) * UNAVAILABLE_SHARE_MAX);
  for (const turn of TURN_NAMES) expect(counts.get(`turn ${turn}`) ?? 0, turn).toBeGreaterThan(10);
  for (const answer of ['acquire 200', 'acquire 409', 'release 200', 'renew 200', 'hang-up', 'events 200'])
    expect(counts.get(answer) ?? 0, answer).toBeGreaterThan(10);
  expect(growth(samples, ({ heapBytes }) => heapBytes)).toBeLessThan(HEAP_GROWTH_BYTES_MAX);
  expect(growth(samples, ({ rssBytes }) => rssBytes)).toBeLessThan(RSS_GROWTH_BYTES_MAX);
  expect(growth(samples, ({ descriptors }) => descriptors)).toBeLessThan(DESCRIPTOR_GROWTH_MAX);

  // Who left without a word has lost everything one TTL later.
  const gauge = async (name: string) => api.metric(`leasehold_${name}{namespace="mixed"}`);
  const nothingLeft = async () =>
    (await gauge('sessions')) + (await gauge('held_locks')) + (await gauge('waiters')) === 0;
  await eventually(nothingLeft, ENDED_MS_MAX);
  expect((await dev.memory()).descriptors).toBeLessThan(
    (samples[0]?.descriptors ?? 0) + DESCRIPTOR_GROWTH_MAX,
  );
  expect(await dev.process.stop()).toEqual({ code: 0, signal: null });
  expect(dev.process.stderr).toBe('');
});
