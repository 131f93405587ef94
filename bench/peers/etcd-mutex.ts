/** etcd's own lock, `concurrency.Mutex`, by the Go program beside this file: built once, kept in the cache folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { ensureGoProgram } from '../../scripts/go-program.mjs';
import { atEnd } from '../endings.ts';
import type { Summary } from '../measure.ts';

const FOLDER = join(import.meta.dirname, 'etcd-mutex');
const LOCK_MS_MAX = 30_000;
const POLL_MS = 5;
const SOURCES = ['main.go', 'go.mod', 'go.sum'];

export interface MutexSummary extends Summary {
  readonly meanMs: number;
}

/** Builds the program if need be. Rejects when there is no Go. */
export class EtcdMutex {
  readonly #program: string;

  private constructor(program: string) {
    this.#program = program;
  }

  static async build(): Promise<EtcdMutex> {
    const hash = createHash('sha256');
    for (const source of SOURCES) hash.update(readFileSync(join(FOLDER, source)));
    const version = hash.digest('hex').slice(0, 12);
    return new EtcdMutex(await ensureGoProgram({ name: 'etcd-mutex', version, folder: FOLDER }));
  }

  /** Workers that lock and unlock in a loop. On one name an operation is one hand-over, its latency the wait. */
  async lock(
    etcdEndpoints: readonly string[],
    {
      workers,
      oneName,
      seconds,
    }: { readonly workers: number; readonly oneName: boolean; readonly seconds: number },
  ): Promise<MutexSummary> {
    const flags = [`-workers=${workers}`, `-one-name=${oneName}`, `-seconds=${seconds}`];
    await using program = this.#start(etcdEndpoints, flags);
    const { child } = program;
    const [output, [code]] = await Promise.all([
      text(child.stdout as NonNullable<typeof child.stdout>),
      once(child, 'exit'),
    ]);
    if (code !== 0) throw new Error(`etcd-mutex ended with ${String(code)}`);
    return JSON.parse(output) as MutexSummary;
  }

  /** Locks another name every 20 ms until it is disposed of, and remembers when each was had. */
  probe(etcdEndpoints: readonly string[]): MutexProbe {
    return new MutexProbe(this.#start(etcdEndpoints, ['-mode=probe']));
  }

  #start(etcdEndpoints: readonly string[], flags: readonly string[]): Running {
    const args = [`-endpoints=${etcdEndpoints.join(',')}`, ...flags];
    // What its client library warns of while members are killed is no news.
    return new Running(spawn(this.#program, args, { stdio: ['ignore', 'pipe', 'ignore'] }));
  }
}

class Running implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #ending: AsyncDisposable;

  constructor(child: ChildProcess) {
    this.child = child;
    this.#ending = atEnd(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#ending[Symbol.asyncDispose]());
  }
}

class MutexProbe implements AsyncDisposable {
  readonly #running: Running;
  /** When each lock was planned and had, ms of the wall clock. */
  readonly #locks: { readonly plannedMs: number; readonly hadMs: number }[] = [];

  constructor(running: Running) {
    this.#running = running;
    const { stdout } = running.child;
    if (stdout === null) throw new Error('etcd-mutex has no output');
    createInterface({ input: stdout }).on('line', (line) => {
      const [plannedMs = 0, hadMs = 0] = line.split(' ').map(Number);
      this.#locks.push({ plannedMs, hadMs });
    });
  }

  /** How long after `sinceMs` (of the wall clock) the first lock was had that was asked for after it. */
  async firstAfter(sinceMs: number): Promise<number> {
    const deadline = Date.now() + LOCK_MS_MAX;
    while (Date.now() < deadline) {
      const had = this.#locks
        .filter(({ plannedMs }) => plannedMs >= sinceMs)
        .map(({ hadMs }) => hadMs - sinceMs);
      if (had.length > 0) return Math.min(...had);
      await pause(POLL_MS);
    }
    throw new Error('the mutex is not had any more');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#running[Symbol.asyncDispose]();
  }
}
