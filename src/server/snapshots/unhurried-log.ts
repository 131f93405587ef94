/**
 * Reading a log beside its leader, in the leader's own thread: without pauses a page of full entries would be replayed in one go,
 * and keepalives would wait for it.
 */
import type { StoredEntry } from '../../log/port.ts';
import type { Timers } from '../../platform/runtime.ts';
import type { ReadableLog } from './recovery.ts';

/** Replaying so much takes a few milliseconds. */
const BYTES_IN_ONE_GO = 64 * 1024;

/** The same log, whose `read` and `readChunk` let others have their turn in between. Once `isOver`, reading ends where it is. */
export function unhurried(
  log: ReadableLog,
  timers: Pick<Timers, 'soon'>,
  isOver: () => boolean = () => false,
): ReadableLog {
  return {
    lineage: log.lineage,
    snapshots: () => log.snapshots(),
    readChunk: async (manifest, chunk) => {
      await turnOfOthers(timers);
      return log.readChunk(manifest, chunk);
    },
    read: (fromIndex) => readWithPauses(log, fromIndex, { timers, isOver }),
  };
}

interface Hurry {
  readonly timers: Pick<Timers, 'soon'>;
  readonly isOver: () => boolean;
}

async function* readWithPauses(
  log: ReadableLog,
  fromIndex: number,
  { timers, isOver }: Hurry,
): AsyncGenerator<StoredEntry> {
  let bytes = 0;
  for await (const entry of log.read(fromIndex)) {
    if (isOver()) return;
    yield entry;
    bytes += entry.bytes.byteLength;
    if (bytes < BYTES_IN_ONE_GO) continue;
    bytes = 0;
    await turnOfOthers(timers);
  }
}

function turnOfOthers(timers: Pick<Timers, 'soon'>): Promise<void> {
  return new Promise((resolve) => timers.soon(resolve));
}
