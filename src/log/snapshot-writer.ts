/** Writing the open snapshot chunk by chunk, and keeping what its manifest has to say (rule L3). */
import type { LockLog, LogPosition, SnapshotManifest } from './port.ts';
import { hashOf } from './rules.ts';

/** Where a snapshot stands: on an entry, with the event hash of the state after it. */
export interface SnapshotPlace extends LogPosition {
  readonly eventHash: string;
}

export class SnapshotWriter {
  readonly id: string;
  readonly #log: Pick<LockLog, 'writeChunk'>;
  readonly #chunkHashes: string[] = [];
  #bytes = 0;

  constructor(log: Pick<LockLog, 'writeChunk'>, id: string) {
    this.#log = log;
    this.id = id;
  }

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** One at a time. @throws RangeError the snapshot is not open any more. */
  async write(chunk: Uint8Array): Promise<void> {
    await this.#log.writeChunk(this.id, this.#chunkHashes.length, chunk);
    this.#chunkHashes.push(hashOf(chunk));
    this.#bytes += chunk.byteLength;
  }

  /** Of what was written. */
  manifest({ index, hash, eventHash }: SnapshotPlace): SnapshotManifest {
    const chunkHashes = [...this.#chunkHashes];
    return { id: this.id, index, entryHash: hash, eventHash, chunkHashes, bytes: this.#bytes };
  }
}
