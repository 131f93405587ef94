/**
 * A million held locks as a snapshot and back. The pass that makes it is what a standby does in slices and a lone leader in one piece; reading
 * it is the larger part of a cold replica's recovery. Prints figures; only what must never change is asserted.
 */
import { Buffer } from 'node:buffer';
import { expect, test } from 'vitest';
import { SnapshotReader } from '../../src/core/index.ts';
import { chunksOf } from '../../src/server/snapshots/snapshot-chunks.ts';
import { TestGroup } from '../support/core.ts';

const LOCKS = 1_000_000;
const LOCKS_PER_SESSION = 100;
/** Of a chunk: its last line may go beyond 128 KiB. */
const CHUNK_BYTES_MAX = 132 * 1024;

function holding(): TestGroup {
  const group = new TestGroup({ checked: false, config: { sessions: LOCKS / LOCKS_PER_SESSION } });
  for (let number = 0; number < LOCKS / LOCKS_PER_SESSION; number++) {
    const session = group.open();
    const name = (at: number): string => `orders/merchant-${number}-${at}`;
    const commands = Array.from({ length: LOCKS_PER_SESSION }, (_, at) =>
      group.acquireCommand(session, name(at)),
    );
    group.run(commands, 1);
  }
  return group;
}

test('a million held locks are written in chunks of 128 KiB and read back', () => {
  const { state } = holding();
  const startMs = performance.now();
  const chunks = [...chunksOf(state)];
  const writtenMs = performance.now();
  const reader = new SnapshotReader();
  let rest = '';
  for (const chunk of chunks) {
    const lines = (rest + Buffer.from(chunk).toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) reader.line(line);
  }
  const copy = reader.finish();
  const readMs = performance.now();
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  console.log(
    `${LOCKS} locks: ${chunks.length} chunks, ${Math.round(bytes / 1024 ** 2)} MiB; ` +
      `made in ${Math.round(writtenMs - startMs)} ms, read in ${Math.round(readMs - writtenMs)} ms`,
  );
  expect(copy.holds).toBe(LOCKS);
  expect(copy.eventHash).toBe(state.eventHash);
  expect(Math.max(...chunks.map((chunk) => chunk.byteLength))).toBeLessThan(CHUNK_BYTES_MAX);
});
