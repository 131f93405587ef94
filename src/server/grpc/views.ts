/**
 * Views of locks as messages come back from `proto/leasehold/v1/lock.proto`. There the cause of a revoke is a text that is
 * empty while none runs; here it is null then.
 */
import type { RevokeCause } from '../../api/entry.ts';
import type { HolderView, LockView } from '../../api/wire.ts';
import { type Message, MessageError } from './proto.ts';

/** A grant or a holder, with its cause as the rest of the program knows it. */
export function decodeRevoking(message: Message): Message & { readonly revoking: RevokeCause | null } {
  return { ...message, revoking: message.revoking === '' ? null : (message.revoking as RevokeCause) };
}

export function decodeHolder(message: Message): HolderView {
  return decodeRevoking(message) as unknown as HolderView;
}

/** @throws MessageError there is none: protobuf has no fields that must be there. */
export function decodeLock(message: Message | null): LockView {
  if (message === null) throw new MessageError('an answer about a lock does not hold it');
  const holders = (message.holders as readonly Message[]).map(decodeHolder);
  return { ...message, holders } as unknown as LockView;
}
