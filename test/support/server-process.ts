/** A server process of a test: its output is kept for the failure message, and it never outlives the test's process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { standStill } from './stand-still.ts';

const OUTPUT_CHARACTERS_MAX = 20_000;
const STOP_MS_MAX = 10_000;

export interface ServerOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly user?: { readonly uid: number; readonly gid: number };
  readonly stopSignal: NodeJS.Signals;
}

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #stopSignal: NodeJS.Signals;
  readonly #killWithUs = (): void => void this.#child.kill('SIGKILL');
  #output = '';

  constructor({ command, args, cwd, user, stopSignal }: ServerOptions) {
    this.#stopSignal = stopSignal;
    this.#child = spawn(command, [...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'], ...user });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output = (this.#output + text).slice(-OUTPUT_CHARACTERS_MAX);
      });
    }
    this.#child.on('error', (error) => {
      this.#output += String(error);
    });
    process.once('exit', this.#killWithUs);
  }

  get isRunning(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Calls `ready` until it answers true. */
  async until(ready: () => Promise<boolean>, limitMs: number): Promise<void> {
    const giveUpAt = Date.now() + limitMs;
    while (!(await ready().catch(() => false))) {
      if (!this.isRunning || Date.now() > giveUpAt)
        throw new Error(`the server did not start:\n${this.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** SIGSTOP; `signal('SIGCONT')` lets it go on. */
  standStill(): void {
    standStill(this.#child);
  }

  async stop(): Promise<void> {
    process.off('exit', this.#killWithUs);
    if (!this.isRunning) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(this.#stopSignal);
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), STOP_MS_MAX);
    await exited;
    clearTimeout(timer);
  }
}
