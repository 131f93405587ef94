/** A lock server whose standard output is a pipe that nobody reads: it leads as ever, ends as ever, and goes on when somebody reads. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { ETCDS, GroupBench } from '../support/group/group-bench.ts';

const COMMITS = 300;
const STOP_MS_MAX = 5_000;

let bench: GroupBench | null = null;
let child: ChildProcess | null = null;

afterEach(async () => {
  child?.kill('SIGKILL');
  await bench?.end();
  child = null;
  bench = null;
}, 60_000);

test('a full pipe holds up neither commits nor the end of the server, and is read to the last line later', async () => {
  bench = await GroupBench.make({ audit: () => ({ sink: 'stdout' }) });
  await bench.group.start(ETCDS);
  const { program, args, healthUrl } = bench.planned('server-a');
  const start = async (output: 'pipe' | number = 'pipe'): Promise<ChildProcess> => {
    const started = spawn(program, args, { stdio: ['ignore', output, 'ignore'] });
    const isUp = (): Promise<boolean> =>
      fetch(healthUrl).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(isUp, { timeout: 20_000 }).toBe(true);
    return started;
  };
  child = await start();
  const admin = new AdminClient(bench.adminSocket('server-a'));
  const commit = (name: string) => admin.quarantine({ namespace: '', name, reason: 'x'.repeat(1_000) });
  await expect
    .poll(
      () =>
        commit('first').then(
          () => true,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  const times: number[] = [];
  for (let at = 0; at < COMMITS; at++) {
    const startedMs = performance.now();
    await commit(`name-${at}`);
    times.push(performance.now() - startedMs);
  }
  times.sort((a, b) => a - b);
  // The pipe is full after some 60 of them.
  await pause(1_000);
  await commit('last');
  expect(times.at(-1)).toBeLessThan(2_000);
  const stoppingMs = performance.now();
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(0);
  expect(performance.now() - stoppingMs).toBeLessThan(STOP_MS_MAX);
  // Somebody reads what the next one writes.
  child = await start();
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (more: string) => (text += more));
  const indexes = (): Set<number> =>
    new Set(
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { readonly index: number }).index),
    );
  await expect.poll(() => text.includes('"last"'), { timeout: 20_000 }).toBe(true);
  const got = [...indexes()];
  // From the cursor on, which stands below what never left the pipe.
  expect(got[0]).toBeLessThan(COMMITS);
  expect(got).toEqual(got.map((_, at) => (got[0] ?? 0) + at));
  // And one that writes into a file.
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
  const file = join(bench.folder, 'stdout.ndjson');
  const descriptor = openSync(file, 'w');
  child = await start(descriptor);
  closeSync(descriptor);
  await expect
    .poll(
      () =>
        commit('filed').then(
          () => true,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  await expect.poll(() => readFileSync(file, 'utf8'), { timeout: 20_000 }).toContain('"filed"');
  admin.close();
}, 120_000);
