/**
 * A real `leasehold dev` in a process of its own: started from the source as `npm start` does it, on a free port, and ended
 * politely or by SIGKILL. Whatever is left when the test's own process ends is killed with it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { standStill } from '../stand-still.ts';

const ROOT = join(import.meta.dirname, '../../..');
const STARTED = /serves the lock API on (http:\/\/127\.0\.0\.1:([0-9]+))/;
/** The last thing a start prints: the third command to try. */
const START_MESSAGE_END = /\?prefix=.*\n/;
const START_MS_MAX = 25_000;
const EXIT_MS_MAX = 10_000;

export interface DevOptions {
  /** Manifest files or folders. */
  readonly manifests: readonly string[];
  readonly data: string;
  /** Default 0: any free one. */
  readonly port?: number;
  readonly args?: readonly string[];
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Resolves when `promise` does, or rejects after `limitMs` with what was waited for. */
async function within<T>(limitMs: number, what: () => string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${limitMs} ms: ${what()}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class DevProcess {
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  #stdout = '';
  #stderr = '';
  #exit: Exit | null = null;
  readonly #listeners = new Set<() => void>();

  private constructor(options: DevOptions) {
    const { manifests, data, port = 0, args = [] } = options;
    const files = manifests.flatMap((path) => ['-f', path]);
    this.#child = spawn(
      process.execPath,
      ['src/cli/main.ts', 'dev', ...files, '-p', String(port), '-d', data, ...args],
      { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    running.add(this.#child);
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      this.#changed();
    });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      this.#changed();
    });
    this.exited = new Promise((resolve) => {
      // `close`, not `exit`: everything it printed has been read by then.
      this.#child.once('close', (code, signal) => {
        running.delete(this.#child);
        this.#exit = { code, signal };
        this.#changed();
        resolve(this.#exit);
      });
    });
  }

  /** Starts it without waiting for anything. */
  static spawn(options: DevOptions): DevProcess {
    return new DevProcess(options);
  }

  /** Resolves when it serves; rejects with what it printed when it ends before. */
  static async start(options: DevOptions): Promise<DevProcess> {
    const dev = new DevProcess(options);
    await dev.serving();
    return dev;
  }

  get pid(): number {
    if (this.#child.pid === undefined) throw new Error('the process was never started');
    return this.#child.pid;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  get hasExited(): boolean {
    return this.#exit !== null;
  }

  get url(): string {
    const url = STARTED.exec(this.#stdout)?.[1];
    if (url === undefined) throw new Error('it does not serve yet');
    return url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  async serving(): Promise<void> {
    await this.until(() => this.#exit !== null || STARTED.test(this.#stdout), START_MS_MAX);
    if (this.#exit !== null && !STARTED.test(this.#stdout)) {
      const { code, signal } = this.#exit;
      throw new Error(`leasehold dev ended with ${code ?? signal}:\n${this.#stdout}${this.#stderr}`);
    }
  }

  /** The start message as a whole. */
  async startMessage(): Promise<string> {
    await this.until(() => START_MESSAGE_END.test(this.#stdout), START_MS_MAX);
    return this.#stdout;
  }

  /** Waits until what it printed, or its end, makes `isSo` true. */
  until(isSo: () => boolean, limitMs: number): Promise<void> {
    let listener: (() => void) | undefined;
    const happened = new Promise<void>((resolve) => {
      listener = () => {
        if (isSo()) resolve();
      };
      this.#listeners.add(listener);
      listener();
    });
    const printed = (): string => `not yet; it printed:\n${this.#stdout}${this.#stderr}`;
    return within(limitMs, printed, happened).finally(() => {
      if (listener !== undefined) this.#listeners.delete(listener);
    });
  }

  /** kill -9. */
  kill(): Promise<Exit> {
    this.#child.kill('SIGKILL');
    return this.exited;
  }

  /** SIGSTOP and SIGCONT: a process that stands still, as on an overloaded machine. */
  freeze(): void {
    standStill(this.#child);
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** SIGTERM; a process that does not end then is killed, and that is an error. */
  async stop(): Promise<Exit> {
    this.#child.kill('SIGTERM');
    try {
      return await within(EXIT_MS_MAX, () => 'SIGTERM has not ended it', this.exited);
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
