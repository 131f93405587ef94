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

/** Ends everything on Ctrl-C and SIGTERM, the newest first. */
export function endOnSignals(): void {
  let isEnding = false;
  const endAll = async (): Promise<void> => {
    if (isEnding) return;
    isEnding = true;
    process.stderr.write('interrupted: ending what was started\n');
    for (const ending of [...open].reverse()) {
      await ending[Symbol.asyncDispose]().catch((error: unknown) => console.error(error));
    }
    process.exit(EXIT_INTERRUPTED);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void endAll());
}
