/**
 * When to write a snapshot, and writing it (rules L3, L4, L5). In its simplest correct form: the leader turns the state
 * into bytes between two entries, at one index, and sends them while it goes on serving.
 */
import { Buffer } from 'node:buffer';
import { type State, writeSnapshot } from '../core/index.ts';
import type { Leadership, LockLog, LogPosition } from '../log/port.ts';

const CHUNK_BYTES = 128 * 1024;
const FIRST_SNAPSHOT_BYTES = 64 * 1024 * 1024;
/** After one that failed the log grows by this share of what makes one due before the next is tried. */
const RETRY_SHARE = 1 / 8;

export class Snapshots {
  readonly #log: LockLog;
  readonly #leadership: Leadership;
  readonly #dueBytes: number;
  /** Bytes appended since the last snapshot. */
  #logBytes: number;
  #lastBytes: number;
  #isWriting = false;
  /** Set by one that failed: making it costs as much as one that succeeds. */
  #retryAtBytes = 0;

  /** `logBytes`: what lies in the log above the last snapshot; `dueBytes`: lowest size at which one is due. */
  constructor(
    log: LockLog,
    leadership: Leadership,
    {
      logBytes,
      lastBytes,
      dueBytes = FIRST_SNAPSHOT_BYTES,
    }: { logBytes: number; lastBytes: number; dueBytes?: number },
  ) {
    this.#log = log;
    this.#leadership = leadership;
    this.#logBytes = logBytes;
    this.#lastBytes = lastBytes;
    this.#dueBytes = dueBytes;
  }

  appended(bytes: number): void {
    this.#logBytes += bytes;
  }

  get sizes(): { readonly logBytes: number; readonly snapshotBytes: number } {
    return { logBytes: this.#logBytes, snapshotBytes: this.#lastBytes };
  }

  get isDue(): boolean {
    const dueAtBytes = Math.max(this.#dueBytes, 2 * this.#lastBytes, this.#retryAtBytes);
    return !this.#isWriting && this.#logBytes >= dueAtBytes;
  }

  /** Must be called between two entries, with the state after the entry at `at`. Resolves when the log is trimmed. */
  async write(state: State, at: LogPosition): Promise<void> {
    this.#isWriting = true;
    const coveredBytes = this.#logBytes;
    try {
      const chunks = chunksOf(state);
      const writer = await this.#log.openSnapshot(this.#leadership);
      for (const chunk of chunks) await this.#log.writeChunk(this.#leadership, writer, chunk);
      const manifest = await this.#log.commitSnapshot(this.#leadership, writer, at);
      this.#lastBytes = manifest.bytes;
      this.#logBytes -= coveredBytes;
      this.#retryAtBytes = 0;
      await this.#log.trim(this.#leadership);
    } catch (error) {
      this.#retryAtBytes = this.#logBytes + RETRY_SHARE * this.#dueBytes;
      throw error;
    } finally {
      this.#isWriting = false;
    }
  }
}

function chunksOf(state: State): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let lines: string[] = [];
  let units = 0;
  for (const line of writeSnapshot(state)) {
    lines.push(line);
    units += line.length + 1;
    if (units < CHUNK_BYTES) continue;
    chunks.push(Buffer.from(`${lines.join('\n')}\n`));
    lines = [];
    units = 0;
  }
  if (lines.length > 0) chunks.push(Buffer.from(`${lines.join('\n')}\n`));
  return chunks;
}
