/**
 * The embedded engine: a log in one SQLite file, owned by a worker thread of this process, for `leasehold dev`. One replica only: what
 * it protects against is this process dying at any moment, not the disk.
 */

import { pause } from '../../platform/pause.ts';
import type { Logger, Random, Timers } from '../../platform/runtime.ts';
import type { LockLog } from '../port.ts';
import { StoreLog, type StoreLogPorts } from '../store-log.ts';
import type { WorkerOptions } from './messages.ts';
import { WorkerCaller } from './worker-caller.ts';

/** 128 random bits. */
const ID_BYTES = 16;
const SEAL_KEY_BYTES = 32;

export interface EmbeddedLogOptions {
  /** One log per directory; made when it does not exist. On a local disk. */
  readonly directory: string;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
  /** The file never grows beyond this many bytes: appends then reject with LogUnavailableError. Default: no limit but the disk. */
  readonly databaseBytesMax?: number;
  /** Free space that a trim leaves in the file for the next entries. Default 64 MiB. */
  readonly freeBytesKept?: number;
}

/** What a log offers to those who only look. */
export type ReadOnlyLog = Pick<
  LockLog,
  'lineage' | 'head' | 'read' | 'retainedBytes' | 'snapshots' | 'readChunk' | 'close'
>;

/**
 * Opens the log in `directory` for writing, makes it if there is none. It belongs to this handle until `close`, or until the process dies.
 * @throws LogInUseError somebody else has it open; LogFormatError what is there is not a log of this version; CorruptLogError.
 */
export function openEmbeddedLog(options: EmbeddedLogOptions): Promise<LockLog> {
  return openLog('write', options);
}

/** Opens the log in `directory` for reading, also while a server writes it. @throws LogFormatError, CorruptLogError */
export function openEmbeddedLogReadOnly(
  options: Pick<EmbeddedLogOptions, 'directory' | 'timers' | 'random' | 'logger'>,
): Promise<ReadOnlyLog> {
  return openLog('readOnly', options);
}

async function openLog(mode: WorkerOptions['mode'], options: EmbeddedLogOptions): Promise<StoreLog> {
  const { directory, logger, random } = options;
  const caller = new WorkerCaller({
    mode,
    directory,
    lineage: random.hex(ID_BYTES),
    sealKey: random.hex(SEAL_KEY_BYTES),
    databaseBytesMax: options.databaseBytesMax,
    freeBytesKept: options.freeBytesKept,
  });
  const lineage = await caller.opened;
  const ports: StoreLogPorts = {
    pause: (delayMs) => pause(options.timers, delayMs),
    newId: () => random.hex(ID_BYTES),
    onOutage: (change) => {
      const fields = { directory, lineage, method: change.method };
      if (change.type === 'began') logger.warn({ ...fields, error: change.error }, 'the log does not answer');
      else logger.info(fields, 'the log answers again');
    },
  };
  return new StoreLog(lineage, caller, ports);
}
