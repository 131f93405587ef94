/**
 * What was started is ended: at the end of its part, and also when the bench is interrupted. Used as `await using`.
 */

const EXIT_INTERRUPTED = 130;

const open = new Set<Ending>();

class Ending implements AsyncDisposable {
  readonly #end: () => Promise<void> | void;
  #ended: Promise<void> | null = null;

  constructor(end: () => Promise<void> | void) {
    this.#end = end;
    open.add(this);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#ended ??= (async () => {
      open.delete(this);
      await this.#end();
    })();
    return this.#ended;
  }
}

/** `end` runs once: when the scope is left, or on Ctrl-C. */
export function atEnd(end: () => Promise<void> | void): AsyncDisposable {
  return new Ending(end);
}

/** Ends everything, the newest first, on Ctrl-C and SIGTERM, and when something goes wrong that nobody waits for. */
export function endWhenInterrupted(): void {
  let isEnding = false;
  const endAll = async (code: number, why: unknown): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    console.error(why, '- ending what was started');
    for (const ending of [...open].reverse()) {
      await ending[Symbol.asyncDispose]().catch((error: unknown) => console.error(error));
    }
    process.exit(code);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => void endAll(EXIT_INTERRUPTED, signal));
  }
  process.on('uncaughtException', (error) => void endAll(1, error));
}
