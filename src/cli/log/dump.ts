/**
 * `leasehold log dump`: what is in a log, read from its file. Needs no server and disturbs none.
 */
import { Command } from 'commander';
import { decodeEntry } from '../../core/index.ts';
import { openEmbeddedLogReadOnly, type ReadOnlyLog } from '../../log/embedded/embedded-log.ts';
import { TrimmedError } from '../../log/port.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { history } from '../../server/recovery.ts';
import { DATA_FOLDER_DEFAULT } from '../conventions.ts';
import { findLog } from './find-log.ts';
import { entryLines, eventLines, headLine } from './lines.ts';
import { conclude, outputOption, parseIndex, print } from './outcome.ts';

interface DumpFlags {
  readonly namespace?: string;
  readonly from?: number;
  readonly events?: true;
  readonly output: 'table' | 'json';
}

export function logCommand(): Command {
  return new Command('log').description('Look into the log of a LockNamespace.').addCommand(
    new Command('dump')
      .description('Print the entries of a log, also while a server writes it.')
      .argument('[folder]', 'data folder of leasehold dev, or the folder of one log', DATA_FOLDER_DEFAULT)
      .option('-n, --namespace <alias>', 'which log, when the folder holds several')
      .option('--from <index>', 'first entry; default: the oldest there is', parseIndex)
      .option('--events', 'what the commands caused, by replay, instead of the commands')
      .addOption(outputOption())
      .addHelpText('after', HELP)
      .action((folder: string, flags: DumpFlags) => conclude(() => dump(folder, flags))),
  );
}

const HELP = `
An entry is what was committed at once; a line is one of its commands ("-": an entry without any,
by which the leader makes sure that it still leads). Group time starts with the log and drives all
leases; wall time is for people. Fields that are empty, zero or false are left out.
With -o json: one JSON document a line, an entry each; with --events fit for "leasehold history check".

Examples:
  leasehold log dump
  leasehold log dump --namespace payouts --from 1000
  leasehold log dump -n payouts --events | grep 'name=merchant-1 '
  leasehold log dump /var/tmp/copy/payments.payouts --events -o json | leasehold history check -

Exit codes: 0 printed, 1 the log is damaged, 125 no such log or wrong usage.
`;

async function dump(folder: string, flags: DumpFlags): Promise<boolean> {
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
