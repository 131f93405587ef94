/**
 * Reading a log beside its leader, in the leader's own thread: without pauses a page of full entries would be replayed in one go,
 * and keepalives would wait for it.
 */
import type { StoredEntry } from '../../log/port.ts';
import type { Timers } from '../../platform/runtime.ts';
import type { ReadableLog } from './recovery.ts';

/** Replaying so much takes a few milliseconds. */
const BYTES_IN_ONE_GO = 64 * 1024;

/** The same log, whose `read` lets others have their turn in between. */
export function unhurried(log: ReadableLog, timers: Timers): ReadableLog {
  return {
    lineage: log.lineage,
    snapshots: () => log.snapshots(),
    readChunk: (manifest, chunk) => log.readChunk(manifest, chunk),
    read: (fromIndex) => readWithPauses(log, fromIndex, timers),
  };
}

async function* readWithPauses(
  log: ReadableLog,
  fromIndex: number,
  timers: Timers,
): AsyncGenerator<StoredEntry> {
  let bytes = 0;
  for await (const entry of log.read(fromIndex)) {
    yield entry;
    bytes += entry.bytes.byteLength;
    if (bytes < BYTES_IN_ONE_GO) continue;
    bytes = 0;
    await new Promise<void>((resolve) => timers.soon(resolve));
  }
}
