/**
 * Events and history entries as messages of `proto/leasehold/v1`, and back.
 */
import type { HistoryEntry, Identity, LockEvent } from '../../api/entry.ts';
import { checkIntegers, type Message, MessageError } from './proto.ts';

type EntryMessage = Omit<HistoryEntry, 'events'> & { readonly events: readonly Message[] };

const NOBODY: Identity = { account: '', podUid: '' };

/**
 * `{type: <name of the field in use>, ...<its fields>}`; type `none` when no field of the `oneof` is in use, or only one that
 * this program does not know.
 */
export function variantOf(message: Message, oneof: string): Message & { readonly type: string } {
  const type = message[oneof];
  return typeof type === 'string' ? { type, ...(message[type] as Message) } : { type: 'none' };
}

export function encodeEvent(event: LockEvent): Message {
  return { [event.type]: event };
}

/** Null: an event that this program does not know. */
export function decodeEvent(message: Message): LockEvent | null {
  const event = variantOf(message, 'type');
  if (event.type === 'none') return null;
  if (event.type === 'sessionOpened') {
    return { ...event, identity: event.identity ?? NOBODY } as unknown as LockEvent;
  }
  return event as unknown as LockEvent;
}

export function encodeHistoryEntry(entry: HistoryEntry): Message {
  const { lineage, epoch, index, at, wallMs, eventHash, events } = entry;
  return { lineage, epoch, index, at, wallMs, eventHash, events: events.map(encodeEvent) };
}

/** Throws MessageError: a history with an event left out would be another history. */
export function decodeHistoryEntry(message: Message): HistoryEntry {
  checkIntegers(message);
  const entry = message as unknown as EntryMessage;
  const events = entry.events.map((event) => {
    const decoded = decodeEvent(event);
    if (decoded !== null) return decoded;
    throw new MessageError(`entry ${entry.index} has an event that this program does not know`);
  });
  return { ...entry, events };
}
