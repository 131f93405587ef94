/**
 * The audit of a lock server that is killed again and again, in the middle of writes to a file, on a disk that is full now and then, and to a
 * receiver whose answers are lost: nothing is missing, what comes twice is the same, nothing is half, and the checker passes it.
 */
import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { openEmbeddedLogReadOnly } from '../../src/log/embedded/embedded-log.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { history } from '../../src/server/snapshots/recovery.ts';
import { leasehold, withoutProgress } from '../support/cli.ts';
import { Random } from '../support/random.ts';

const SEED = Number(process.env.LEASEHOLD_SEED ?? Math.floor(Math.random() * 2 ** 31));
const LIVES = 6;
const WORK_MS_MAX = 500;
const PROGRAM = new URL('../support/audited-process.ts', import.meta.url).pathname;
const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-audit-kills-'));
  ends.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Resolves with the process and the index of its log's head, once it exports. */
async function life(
  log: string,
  sink: object,
  mode: 'work' | 'quiet',
): Promise<{ child: Child; head: number }> {
  const child = spawn(process.execPath, [PROGRAM, log, JSON.stringify(sink), mode], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  ends.push(() => void child.kill('SIGKILL'));
  let text = '';
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    text += chunk;
    const head = /head (\d+)\n/.exec(text)?.[1];
    if (head !== undefined) return { child, head: Number(head) };
  }
  throw new Error(`it did not start: ${errors}`);
}

const ended = (child: Child): Promise<unknown> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve(null);
    else child.once('exit', resolve);
  });

interface Scene {
  readonly sink: object;
  /** What has arrived; null: half a line. */
  lines(): readonly string[];
  /** While a life goes on, and is killed. */
  trouble(random: Random): void;
  heal(): void;
}

async function survives(scene: Scene): Promise<void> {
  const random = new Random(SEED);
  const log = join(temporaryFolder(), 'log');
  for (let at = 0; at < LIVES; at++) {
    const { child } = await life(log, scene.sink, 'work');
    await pause(random.int(WORK_MS_MAX));
    if (random.chance(0.5)) scene.trouble(random);
    await pause(random.int(WORK_MS_MAX));
    child.kill('SIGKILL');
    await ended(child);
    if (random.chance(0.7)) scene.heal();
  }
  scene.heal();
  const last = await life(log, scene.sink, 'quiet');
  const newest = (): number => Math.max(0, ...scene.lines().map((line) => JSON.parse(line).index as number));
  await expect.poll(newest, { timeout: 60_000, interval: 200 }).toBeGreaterThanOrEqual(last.head);
  last.child.kill('SIGKILL');
  await ended(last.child);

  const byIndex = new Map<number, string>();
  for (const line of scene.lines()) {
    const { index, type } = JSON.parse(line) as { index: number; type?: string };
    expect(type).toBeUndefined();
    expect(byIndex.get(index) ?? line).toBe(line);
    byIndex.set(index, line);
  }
  expect(byIndex.size).toBe(newest());
  expect(byIndex.size).toBeGreaterThan(10 * LIVES);
  const { timers, random: real, logger } = createSystemRuntime({ logLevel: 'silent' });
  const read = await openEmbeddedLogReadOnly({ directory: log, timers, random: real, logger });
  const [manifest] = await read.snapshots();
  let compared = 0;
  for await (const entry of history(read, (manifest?.index ?? 0) + 1)) {
    const exported = byIndex.get(entry.index);
    if (exported === undefined) continue;
    expect(JSON.parse(exported)).toEqual({ group: 'test/a', ...entry });
    compared++;
  }
  await read.close();
  expect(compared).toBeGreaterThan(0);
  const file = join(temporaryFolder(), 'all.ndjson');
  writeFileSync(file, `${[...byIndex.entries()].map(([, line]) => line).join('\n')}\n`);
  const checked = await leasehold(['history', 'check', file]);
  expect(withoutProgress(checked.stderr)).toBe('');
  expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('every promise was kept') });
}

test(`to a file, on a disk that is full at the moment of some kills (LEASEHOLD_SEED=${SEED})`, async (context) => {
  const disk = join(temporaryFolder(), 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256m', 'none', disk], { stdio: 'ignore' });
  } catch {
    context.skip('only root can mount a small disk');
  }
  ends.push(() => void execFileSync('umount', ['-l', disk]));
  const path = join(disk, 'audit.ndjson');
  const remount = (size: string): void => void execFileSync('mount', ['-o', `remount,size=${size}`, disk]);
  await survives({
    sink: { sink: 'file', path },
    lines: () => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []),
    // A little more than what is in use: it becomes full in the middle of a write.
    trouble: () => {
      const used = execFileSync('stat', ['-f', '-c', '%b %f %S', disk], { encoding: 'utf8' }).split(' ');
      const [blocks = 0, free = 0, size = 0] = used.map(Number);
      remount(`${(blocks - free) * size + 16 * 1024}`);
    },
    heal: () => remount('256m'),
  });
}, 240_000);

test(`to a receiver whose answers are lost, and which breaks off (LEASEHOLD_SEED=${SEED})`, async () => {
  const taken: string[] = [];
  let isTroubled = false;
  const random = new Random(SEED + 1);
  const server = createServer((request, response) => {
    if (isTroubled && random.chance(0.3)) {
      request.socket.destroy();
      return;
    }
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      taken.push(...body.split('\n').slice(0, -1));
      if (isTroubled && random.chance(0.5)) request.socket.destroy();
      else response.end();
    });
    request.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  await survives({
    sink: { sink: 'http', url: `http://127.0.0.1:${port}/`, timeoutMs: 2_000 },
    lines: () => taken,
    trouble: () => {
      isTroubled = true;
    },
    heal: () => {
      isTroubled = false;
    },
  });
}, 240_000);
