/**
 * Entries of a log as lines of a table that is printed while the log is read, so its columns have fixed widths.
 */
import type { Command, Entry, HistoryEntry, LockEvent } from '../../api/entry.ts';
import { fields, wallTime } from '../output/table.ts';

const INDEX_WIDTH = 8;
const EPOCH_WIDTH = 5;
const SECONDS_WIDTH = 12;
const WALL_TIME_WIDTH = 24;
/** Of no use to people, or shown otherwise. */
const HIDDEN = ['type', 'bucket', 'mapVersion', 'secretHash'];

export function headLine(last: 'COMMAND' | 'EVENT'): string {
  return columns('INDEX', 'EPOCH', 'GROUP TIME', 'WALL TIME', last);
}

/** A line for each command. An entry without commands proves that the leader can commit, or carries on with timers. */
export function entryLines(entry: Entry): string[] {
  const commands = entry.commands.length === 0 ? ['-'] : entry.commands.map(describeCommand);
  return commands.map((command) => lineOf(entry, command));
}

/** A line for each event. */
export function eventLines(entry: HistoryEntry): string[] {
  return entry.events.map((event) => eventLine(entry, event));
}

export function eventLine(entry: HistoryEntry, event: LockEvent): string {
  return lineOf(entry, describeEvent(event));
}

export function describeEvent(event: LockEvent): string {
  return `${event.type} ${fields(event, HIDDEN)}`;
}

function describeCommand(command: Command): string {
  if (command.type !== 'configure') return `${command.type} ${fields(command, HIDDEN)}`;
  const { version, config } = command;
  const of = config === null ? null : `${config.namespace}/${config.name}`;
  return `configure ${fields({ version, config: of }, [])}`;
}

function lineOf({ index, epoch, at, wallMs }: Omit<HistoryEntry, 'events'>, text: string): string {
  return columns(String(index), String(epoch), `${(at / 1000).toFixed(3)} s`, wallTime(wallMs), text);
}

function columns(index: string, epoch: string, at: string, wall: string, text: string): string {
  const left = `${index.padStart(INDEX_WIDTH)}  ${epoch.padStart(EPOCH_WIDTH)}  ${at.padStart(SECONDS_WIDTH)}`;
  return `${left}  ${wall.padEnd(WALL_TIME_WIDTH)}  ${text}`;
}
