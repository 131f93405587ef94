/** The load generator as seen from the bench: a process of its own, so that it shares no event loop with what it measures. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { atEnd } from '../endings.ts';
import type { ResultOf, Task } from './tasks.ts';

/** It has nothing to put in order. */
const END_MS_MAX = 2_000;

interface Reply {
  readonly result?: unknown;
  readonly error?: string;
}

export class Generator implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ending: AsyncDisposable;

  constructor() {
    const child = fork(join(import.meta.dirname, 'main.ts'));
    this.#child = child;
    this.#ending = atEnd(async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const kill = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX);
      child.disconnect();
      await once(child, 'exit');
      clearTimeout(kill);
    });
  }

  async run<T extends Task>(task: T): Promise<ResultOf<T>> {
    const child = this.#child;
    const reply = await new Promise<Reply>((resolve, reject) => {
      const onExit = (): void => reject(new Error('the load generator has ended'));
      child.once('exit', onExit);
      child.once('message', (message) => {
        child.off('exit', onExit);
        resolve(message as Reply);
      });
      child.send(task);
    });
    if (reply.error !== undefined) throw new Error(reply.error);
    return reply.result as ResultOf<T>;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#ending[Symbol.asyncDispose]());
  }
}
