/**
 * An entry as bytes: header, commands, event hash. What is written here is what is hashed, stored and read for ever.
 */
import { hash } from 'node:crypto';
import type { Command, Entry, LockEvent } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import { ByteReader, ByteWriter, FormatError } from './bytes.ts';
import { readCommand, writeCommand } from './commands.ts';
import { writeEvent } from './events.ts';

const writer = new ByteWriter();

export interface EncodedEntry {
  readonly bytes: Uint8Array;
  /** SHA-256 of `bytes`, hex. */
  readonly hash: string;
}

export function sha256(bytes: Uint8Array | string): string {
  return hash('sha256', bytes, 'hex');
}

export function encodeEntry(entry: Entry): EncodedEntry {
  writer.reset();
  writer.byte(entry.format);
  writer.uint(entry.behaviour);
  writer.string(entry.lineage);
  writer.uint(entry.epoch);
  writer.uint(entry.index);
  writer.uint(entry.at);
  writer.uint(entry.wallMs);
  writer.string(entry.previous);
  writer.string(entry.eventHash);
  writer.uint(entry.commands.length);
  for (let i = 0; i < entry.commands.length; i++) writeCommand(writer, entry.commands[i] as Command);
  const bytes = writer.copy();
  return { bytes, hash: sha256(bytes) };
}

/** Throws FormatError when the bytes are not an entry of a format this program knows. */
export function decodeEntry(bytes: Uint8Array): Entry {
  const from = new ByteReader(bytes);
  const format = from.byte();
  if (format !== FORMAT_VERSION) {
    throw new FormatError(`entry format ${format}; this program reads format ${FORMAT_VERSION}`);
  }
  const behaviour = from.uint();
  const lineage = from.string();
  const epoch = from.uint();
  const index = from.uint();
  const at = from.uint();
  const wallMs = from.uint();
  const previous = from.string();
  const eventHash = from.string();
  const count = from.uint();
  const commands: Command[] = [];
  for (let i = 0; i < count; i++) commands.push(readCommand(from));
  from.end();
  return { format, behaviour, lineage, epoch, index, at, wallMs, previous, commands, eventHash };
}

/** The next event hash: unchanged when there are no events (rule C14). */
export function chainEvents(previous: string, events: readonly LockEvent[]): string {
  if (events.length === 0) return previous;
  writer.reset();
  writer.string(previous);
  for (let i = 0; i < events.length; i++) writeEvent(writer, events[i] as LockEvent);
  return sha256(writer.view());
}
