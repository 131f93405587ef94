/** Who wants to hear of commits. One that throws is dropped: it must not reach the leader, which is in the middle of a commit. */
import type { HistoryEntry } from '../../api/entry.ts';
import type { Logger } from '../../platform/runtime.ts';

export type Watcher = (entry: HistoryEntry) => void;

export class Watchers {
  readonly #logger: Logger;
  readonly #all = new Set<Watcher>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Calls back for every later commit, until the returned function is called. */
  add(watcher: Watcher): () => void {
    this.#all.add(watcher);
    return () => this.#all.delete(watcher);
  }

  tell(entry: HistoryEntry): void {
    for (const watcher of this.#all) {
      try {
        watcher(entry);
      } catch (error) {
        this.#all.delete(watcher);
        this.#logger.error(
          { index: entry.index, error: String(error) },
          'a watcher of commits failed and was dropped',
        );
      }
    }
  }
}
