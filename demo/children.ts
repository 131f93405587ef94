/**
 * The processes of the demo: `leasehold dev` and the runners. Each belongs to a `Stage`, which ends them all, also stopped
 * ones, and removes the temporary folder, whatever happens.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RunnerEvent, RunnerEventName } from './runner-events.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RUNNER = fileURLToPath(new URL('./runner.ts', import.meta.url));
const MANIFEST = 'config/samples/payouts.yaml';
const START_MS_MAX = 15_000;
/** How long a process may take to end by itself before it is killed. */
const END_MS_MAX = 3_000;
const STDERR_CHARS_MAX = 4_000;

/** A process ended that should not have, or did not do what it should. */
export class StageError extends Error {}

/** One process, with what it said on standard error and the promise of its end. */
class Child {
  readonly process: ChildProcess;
  readonly label: string;
  /** Settles when the process has ended and all it said was read; never rejects. */
  readonly ended: Promise<number | NodeJS.Signals>;
  readonly #onLine: (line: string) => void;
  #stderr = '';

  constructor(label: string, args: readonly string[], onLine: (line: string) => void) {
    this.label = label;
    this.#onLine = onLine;
    this.process = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = this.#watch();
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new StageError(`${this.label} could not be started`);
    return pid;
  }

  /** For a message to people: how it ended and its last words. */
  async epitaph(): Promise<string> {
    const end = await this.ended;
    return `${this.label} ended too early (${end})${this.#stderr === '' ? '' : `:\n${this.#stderr.trimEnd()}`}`;
  }

  /** Asks with `signal`, insists with SIGKILL, which also ends a stopped process. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.process.kill(signal);
    const insist = setTimeout(() => this.process.kill('SIGKILL'), END_MS_MAX);
    await this.ended;
    clearTimeout(insist);
  }

  async #watch(): Promise<number | NodeJS.Signals> {
    const { stdout, stderr } = this.process;
    if (stdout !== null) createInterface({ input: stdout }).on('line', this.#onLine);
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS_MAX);
    });
    try {
      const [code, signal] = await once(this.process, 'close');
      return code ?? signal;
    } catch (error) {
      this.#stderr += String(error);
      return 1;
    }
  }
}

export interface RunnerOptions {
  readonly name: string;
  readonly url: string;
  readonly database: string;
  readonly isFenced: boolean;
  readonly slowBatch?: string;
  readonly onEvent: (event: RunnerEvent) => void;
}

interface Waiter {
  readonly event: RunnerEventName;
  readonly count: number;
  readonly resolve: () => void;
}

export class Runner {
  readonly #child: Child;
  readonly #counts = new Map<RunnerEventName, number>();
  readonly #waiters = new Set<Waiter>();

  constructor(options: RunnerOptions) {
    const { name, url, database, isFenced, slowBatch, onEvent } = options;
    this.#child = new Child(
      `runner ${name}`,
      [
        RUNNER,
        ...['--name', name, '--url', url, '--database', database],
        ...(slowBatch === undefined ? [] : ['--slow-batch', slowBatch]),
        ...(isFenced ? [] : ['--without-fence']),
      ],
      (line) => {
        const event = JSON.parse(line) as RunnerEvent;
        onEvent(event);
        this.#count(event.event);
      },
    );
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Ends it for good, also while it is stopped. */
  kill(): Promise<void> {
    return this.#child.end('SIGKILL');
  }

  /** Resolves once `count` events of this kind have come, now or before; rejects if the runner ends without. */
  async has(event: RunnerEventName, count = 1): Promise<void> {
    if ((this.#counts.get(event) ?? 0) >= count) return;
    const { promise, resolve } = Promise.withResolvers<'seen'>();
    this.#waiters.add({ event, count, resolve: () => resolve('seen') });
    if ((await Promise.race([promise, this.#child.ended])) !== 'seen')
      throw new StageError(await this.#child.epitaph());
  }

  /** Resolves when it has ended by itself with `code`; rejects if it ended otherwise. */
  async endsWith(code: number): Promise<void> {
    if ((await this.#child.ended) !== code) throw new StageError(await this.#child.epitaph());
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.process.kill(signal);
  }

  #count(event: RunnerEventName): void {
    const count = (this.#counts.get(event) ?? 0) + 1;
    this.#counts.set(event, count);
    for (const waiter of this.#waiters) {
      if (waiter.event !== event || waiter.count > count) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}

export class Stage implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-'));
  /** Rejects when `leasehold dev` ends before the stage is cleared. */
  readonly failed: Promise<never>;
  readonly #cleanUp = new AsyncDisposableStack();
  readonly #fail: (error: StageError) => void;

  constructor() {
    const { promise, reject } = Promise.withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    this.#cleanUp.defer(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  /** Starts `leasehold dev` on a free port. */
  async startLeasehold(): Promise<{ readonly url: string; readonly pid: number; readonly manifest: string }> {
    this.#mustBeOpen();
    const { promise, resolve } = Promise.withResolvers<string>();
    const data = join(this.folder, 'data');
    const args = [join(ROOT, 'src/cli/main.ts'), 'dev', '-f', MANIFEST, '-p', '0', '-d', data];
    const child = new Child('leasehold dev', args, (line) => {
      const url = /^Leasehold serves .* on (http:\S+)/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
    this.#cleanUp.defer(() => child.end('SIGTERM'));
    void child.epitaph().then((text) => this.#fail(new StageError(text)));
    const url = await Promise.race([promise, sleep(START_MS_MAX, null, { ref: false })]);
    if (url === null) throw new StageError(`leasehold dev did not start within ${START_MS_MAX} ms`);
    return { url, pid: child.pid, manifest: MANIFEST };
  }

  startRunner(options: RunnerOptions): Runner {
    this.#mustBeOpen();
    const runner = new Runner(options);
    this.#cleanUp.defer(() => runner.kill());
    return runner;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanUp.disposeAsync();
  }

  /** The story may still be under way when the stage is cleared: it must not start anything more. */
  #mustBeOpen(): void {
    if (this.#cleanUp.disposed) throw new StageError('the demo is being ended');
  }
}
