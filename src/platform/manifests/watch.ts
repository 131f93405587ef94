/**
 * Notices changes of manifests. What counts is the content, read again every few seconds; the operating system's own
 * notifications only make that sooner. They miss too much to be relied on: files replaced by renaming, folders replaced
 * as a whole, network file systems, queues that ran over.
 *
 * A change is told only when two readings in a row found the same: a file half written, or a folder half copied, would
 * look like namespaces removed, and removing a namespace ends its locks.
 */
import { type FSWatcher, watch } from 'node:fs';
import { type LoadOptions, type LoadResult, parseSources, readSources } from './load.ts';

const SETTLE_MS_DEFAULT = 200;
const POLL_MS_DEFAULT = 2_000;

export interface WatchOptions extends LoadOptions {
  /** What the caller serves now; only a different content is told. */
  readonly loaded: LoadResult;
  /** Gets what is there after a change, valid or not. Must not throw. */
  readonly onChange: (result: LoadResult) => void;
  /** Milliseconds during which nothing may change before a change is told. Default: 200. */
  readonly settleMs?: number;
  /** Milliseconds between readings when nothing seems to happen. Default: 2,000. */
  readonly pollMs?: number;
}

export interface ManifestWatch {
  /** After it `onChange` is not called any more. */
  close(): void;
}

/** Starts to watch; keeps no process alive. */
export function watchManifests(options: WatchOptions): ManifestWatch {
  const { onChange, settleMs = SETTLE_MS_DEFAULT, pollMs = POLL_MS_DEFAULT } = options;
  const folders = watchFolders(() => scheduleWithin(settleMs));
  let toldHash = options.loaded.contentHash;
  let candidateHash: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  let dueMs = Number.POSITIVE_INFINITY;
  let isReading = false;
  let isClosed = false;

  /** Brings the next reading forward, never back: a folder where something always happens is read all the same. */
  function scheduleWithin(delayMs: number): void {
    const atMs = performance.now() + delayMs;
    if (isClosed || atMs >= dueMs) return;
    dueMs = atMs;
    if (isReading) return;
    clearTimeout(timer);
    timer = setTimeout(() => void check(), delayMs).unref();
  }

  async function check(): Promise<void> {
    isReading = true;
    dueMs = Number.POSITIVE_INFINITY;
    const sources = await readSources(options);
    isReading = false;
    if (isClosed) return;
    const beganToWatch = folders.set(sources.folders);
    const isNew = sources.contentHash !== toldHash;
    const isSettled = isNew && sources.contentHash === candidateHash;
    candidateHash = isNew && !isSettled ? sources.contentHash : undefined;
    // What happened while reading, or before the watch began, may have been missed by it.
    const mayHaveMissed = beganToWatch || dueMs !== Number.POSITIVE_INFINITY;
    dueMs = Number.POSITIVE_INFINITY;
    scheduleWithin(candidateHash !== undefined || mayHaveMissed ? settleMs : pollMs);
    if (!isSettled) return;
    toldHash = sources.contentHash;
    onChange(parseSources(options, sources));
  }

  scheduleWithin(0);
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
      folders.set([]);
    },
  };
}

/**
 * Notifications for a changing set of folders. `set` says whether it began to watch one; a folder that cannot be
 * watched is tried again at the next `set`.
 */
function watchFolders(onEvent: () => void): { set(folders: readonly string[]): boolean } {
  const watchers = new Map<string, FSWatcher>();
  const drop = (folder: string): void => {
    watchers.get(folder)?.close();
    watchers.delete(folder);
  };
  const add = (folder: string): boolean => {
    try {
      const watcher = watch(folder, { persistent: false }, onEvent);
      watcher.on('error', () => drop(folder));
      watchers.set(folder, watcher);
      return true;
    } catch {
      // Not there, or no watches left: the regular reading finds changes without it.
      return false;
    }
  };
  return {
    set(folders) {
      for (const folder of [...watchers.keys()]) if (!folders.includes(folder)) drop(folder);
      const added = folders.filter((folder) => !watchers.has(folder) && add(folder));
      return added.length > 0;
    },
  };
}
