/**
 * Files that are replaced while the process runs: certificates, keys, tokens, key sets. They are read again on a timer, since notifications
 * miss too much to be relied on (folders swapped as a whole by a symbolic link, network file systems). Several files are taken together: a
 * certificate is of no use with the key before.
 */
import { readFileSync } from 'node:fs';
import type { Timer, Timers } from './runtime.ts';

/** A replaced file is in use after so long at the latest. */
const RELOAD_MS = 1_000;

export interface WatchedFilesOptions<T> {
  readonly paths: readonly string[];
  /** Of their contents, in the order of `paths`. Throws when they cannot be used. */
  readonly parse: (contents: readonly Buffer[]) => T;
  readonly timers: Timers;
  /** Told of each new content, once: in use from now on, or, with an error, not: then the one before stays. */
  readonly onReload: (reload: { readonly paths: readonly string[]; readonly error: unknown | null }) => void;
}

export class WatchedFiles<T> {
  readonly #options: WatchedFilesOptions<T>;
  readonly #listeners = new Set<(value: T) => void>();
  #value: T;
  /** What was last read, whether it could be used or not. */
  #seen: string;
  #timer: Timer | null = null;

  /** Throws what `parse` throws, or that a file cannot be read, with its path. */
  constructor(options: WatchedFilesOptions<T>) {
    this.#options = options;
    const contents = read(options.paths);
    this.#value = options.parse(contents);
    this.#seen = fingerprint(contents);
    this.#plan();
  }

  get value(): T {
    return this.#value;
  }

  /** Told of each new value, after it is in use, until the returned function is called. */
  onChange(listener: (value: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#timer?.cancel();
    this.#listeners.clear();
  }

  #plan(): void {
    this.#timer = this.#options.timers.after(RELOAD_MS, () => {
      this.#look();
      this.#plan();
    });
  }

  #look(): void {
    const { paths, parse, onReload } = this.#options;
    let seen = '';
    try {
      const contents = read(paths);
      seen = fingerprint(contents);
      if (seen === this.#seen) return;
      this.#value = parse(contents);
    } catch (error) {
      seen = seen === '' ? `unreadable: ${String(error)}` : seen;
      if (seen === this.#seen) return;
      this.#seen = seen;
      onReload({ paths, error });
      return;
    }
    this.#seen = seen;
    onReload({ paths, error: null });
    for (const listener of this.#listeners) listener(this.#value);
  }
}

function read(paths: readonly string[]): readonly Buffer[] {
  return paths.map((path) => readFileSync(path));
}

function fingerprint(contents: readonly Buffer[]): string {
  return contents.map((content) => content.toString('base64')).join(' ');
}
