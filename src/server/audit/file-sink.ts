/**
 * A file as a sink: lines are appended, and safe on the disk before they count. The file is opened for each batch, so that whoever rotates it
 * may move it away at any time; the next batch begins a new one.
 *
 * A crash, or a disk that is full, in the middle of a write leaves half a line. It was not counted, so it is cut off before the next one is
 * written.
 */
import { Buffer } from 'node:buffer';
import { constants, type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { AuditBatch } from './records.ts';
import type { AuditSink } from './sink.ts';

const LINE_END = 0x0a;
const LOOK_BYTES = 64 * 1024;

export interface FileSinkOptions {
  readonly path: string;
  /** `batch`: each batch is synced to the disk before it counts. `never`: a power cut may take what was exported last. */
  readonly fsync: 'batch' | 'never';
}

export class FileSink implements AuditSink {
  readonly kind = 'file';
  readonly #options: FileSinkOptions;
  /** One write after the other: an exporter that was stopped may still be writing when its successor begins. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  write(batch: AuditBatch): Promise<void> {
    const writing = this.#last.then(() => this.#write(batch));
    this.#last = writing.catch(() => undefined);
    return writing;
  }

  close(): Promise<void> {
    return this.#last;
  }

  async #write({ lines }: AuditBatch): Promise<void> {
    const { path, fsync } = this.#options;
    // Opened for reading too, a FIFO without a reader does not block.
    const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      const stat = await file.stat();
      if (!stat.isFile()) throw new Error(`${path} is no regular file: set audit.path to one`);
      const end = await endOfLastLine(file, stat.size);
      if (stat.size > end) await file.truncate(end);
      await writeAll(file, Buffer.from(`${lines.join('\n')}\n`), end);
      if (fsync === 'never') return;
      await file.datasync();
      if (stat.size === 0) await syncFolderOf(path);
    } finally {
      await file.close();
    }
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const { bytesWritten } = await file.write(bytes, written, bytes.length - written, position + written);
    written += bytesWritten;
  }
}

/** A new name is safe once its folder is. */
async function syncFolderOf(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Just after the last line end; 0: there is none. */
async function endOfLastLine(file: FileHandle, size: number): Promise<number> {
  let end = size;
  const bytes = Buffer.alloc(LOOK_BYTES);
  while (end > 0) {
    const from = Math.max(0, end - LOOK_BYTES);
    const { bytesRead } = await file.read(bytes, 0, end - from, from);
    const at = bytes.subarray(0, bytesRead).lastIndexOf(LINE_END);
    if (at >= 0) return from + at + 1;
    end = from;
  }
  return 0;
}
