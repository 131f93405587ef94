/**
 * A state as the chunks of a snapshot, and writing them at a bounded pace, so that appends are not held up behind them (rule L5).
 */
import { Buffer } from 'node:buffer';
import { type State, writeSnapshot } from '../../core/index.ts';
import type { SnapshotWriter } from '../../log/snapshot-writer.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';

const CHUNK_BYTES = 128 * 1024;
const BYTES_PER_MS_MAX = (8 * 1024 * 1024) / 1_000;

/** Each step makes one chunk, in a millisecond or two. The state must stay as it is until the last one is taken. */
export function* chunksOf(state: State): Generator<Uint8Array> {
  let lines: string[] = [];
  let units = 0;
  for (const line of writeSnapshot(state)) {
    lines.push(line);
    units += line.length + 1;
    if (units < CHUNK_BYTES) continue;
    yield Buffer.from(`${lines.join('\n')}\n`);
    lines = [];
    units = 0;
  }
  if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`);
}

/** False: `isOver` became true, after which no further chunk is taken nor written. */
export async function writePaced(
  writer: SnapshotWriter,
  chunks: Iterable<Uint8Array>,
  { clock, timers, isOver }: Pick<Runtime, 'clock' | 'timers'> & { readonly isOver: () => boolean },
): Promise<boolean> {
  const startMs = clock.monotonicMs();
  const steps = chunks[Symbol.iterator]();
  while (!isOver()) {
    const chunk = steps.next();
    if (chunk.done === true) return true;
    const aheadMs = startMs + writer.bytes / BYTES_PER_MS_MAX - clock.monotonicMs();
    if (aheadMs > 0) await pause(timers, aheadMs);
    if (!isOver()) await writer.write(chunk.value);
  }
  return false;
}
