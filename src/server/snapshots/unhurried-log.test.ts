import { expect, test } from 'vitest';
import type { StoredEntry } from '../../log/port.ts';
import { systemTimers } from '../../platform/system-runtime.ts';
import type { ReadableLog } from './recovery.ts';
import { unhurried } from './unhurried-log.ts';

const ENTRY_BYTES = 8 * 1024;

/** As many entries as asked for, all in one page: no turn of the event loop between them. */
function logOf(count: number): ReadableLog {
  const entries = Array.from(
    { length: count },
    (_, i): StoredEntry => ({ index: i + 1, bytes: new Uint8Array(ENTRY_BYTES), hash: '', previous: '' }),
  );
  return {
    lineage: 'l',
    snapshots: () => Promise.resolve([]),
    readChunk: () => Promise.reject(new Error('no snapshot')),
    async *read(fromIndex) {
      yield* entries.slice(fromIndex - 1);
    },
  };
}

test('others have their turn while a long log is read, and nothing is lost', async () => {
  let turns = 0;
  const ticker = setInterval(() => turns++, 0);
  const read: number[] = [];
  for await (const { index } of unhurried(logOf(400), systemTimers).read(11)) {
    read.push(index);
    // As long as replaying an entry of this size takes.
    const until = performance.now() + 0.5;
    while (performance.now() < until);
  }
  clearInterval(ticker);
  expect(read).toEqual(Array.from({ length: 390 }, (_, i) => i + 11));
  // 64 KiB at a time are 8 entries, so about 48 pauses.
  expect(turns).toBeGreaterThan(20);
});
