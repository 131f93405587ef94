/**
 * `leasehold log dump`: what is in a log, read from its file. Needs no server and disturbs none.
 */
import { decodeEntry } from '../../core/index.ts';
import { openEmbeddedLogReadOnly, type ReadOnlyLog } from '../../log/embedded/embedded-log.ts';
import { TrimmedError } from '../../log/port.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { history } from '../../server/snapshots/recovery.ts';
import { entryLines, eventLines, headLine } from '../history/lines.ts';
import { print } from '../output/outcome.ts';
import { findLog } from './find-log.ts';

export interface DumpFlags {
  readonly namespace?: string;
  readonly from?: number;
  readonly events?: true;
  readonly output: 'table' | 'json';
}

export async function dump(folder: string, flags: DumpFlags): Promise<boolean> {
  const runtime = createSystemRuntime({ logLevel: 'error' });
  const log = await openEmbeddedLogReadOnly({ directory: findLog(folder, flags.namespace), ...runtime });
  try {
    const from = flags.from ?? (await oldestIndex(log));
    if (flags.events) await dumpEvents(log, from, flags.output);
    else await dumpEntries(log, from, flags.output);
  } finally {
    await log.close();
  }
  return true;
}

async function dumpEntries(log: ReadOnlyLog, from: number, output: 'table' | 'json'): Promise<void> {
  if (output === 'table') await print(headLine('COMMAND'));
  for await (const { bytes, hash } of log.read(from)) {
    const entry = decodeEntry(bytes);
    const lines = output === 'table' ? entryLines(entry) : [JSON.stringify({ ...entry, hash })];
    for (const line of lines) await print(line);
  }
}

async function dumpEvents(log: ReadOnlyLog, from: number, output: 'table' | 'json'): Promise<void> {
  if (output === 'table') await print(headLine('EVENT'));
  for await (const entry of history(log, from)) {
    const lines = output === 'table' ? eventLines(entry) : [JSON.stringify(entry)];
    for (const line of lines) await print(line);
  }
}

async function oldestIndex(log: ReadOnlyLog): Promise<number> {
  try {
    await log.read(1)[Symbol.asyncIterator]().next();
    return 1;
  } catch (error) {
    if (!(error instanceof TrimmedError)) throw error;
    console.error(`entries up to ${error.below} were trimmed; this starts at ${error.below + 1}`);
    return error.below + 1;
  }
}
