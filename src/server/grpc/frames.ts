/**
 * The frames of `src/api/wire.ts` as messages of `proto/leasehold/v1/lock.proto`, and back. Thin, because both name everything
 * alike: a variant `{type: 'acquire', ...}` here is the field `acquire` of a `oneof` there. `frames.test.ts` holds the two
 * together: a variant or field without its twin fails it.
 */
import type { CommandResult } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import type {
  Answer,
  AnswerBody,
  ClientRequest,
  ClientRequestBody,
  RelayRequest,
  SessionNotice,
} from '../../api/wire.ts';
import { decodeEvent, encodeEvent, variantOf } from './events.ts';
import { checkIntegers, type Message, MessageError } from './proto.ts';
import { decodeHolder, decodeLock, decodeRevoking } from './views.ts';

type Refused = Extract<CommandResult, { type: 'refused' }>;

export type RequestMessage = Message & { readonly id: number; readonly body?: string };

export type AnswerMessage = Message & { readonly id: number; readonly body?: string };

export interface NoticeMessage {
  readonly session: number;
  readonly attach: number;
  readonly event: Message | null;
}

export function encodeRequest({ id, body }: ClientRequest | RelayRequest): Message {
  return { id, [body.type]: body };
}

/** A request of an unknown kind becomes one that the front end refuses under its id. */
export function decodeRequest(request: RequestMessage): ClientRequest {
  return { id: request.id, body: variantOf(request, 'body') as unknown as ClientRequestBody };
}

export function encodeNotice({ session, attach, event }: SessionNotice): Message {
  return { session, attach, event: encodeEvent(event) };
}

export function encodeAnswer({ id, body }: Answer): Message {
  const isDelayedOnly = body.type === 'refused' && body.holder === null;
  return { id, [body.type]: isDelayedOnly ? { ...body, delayedOnly: true } : body };
}

export function decodeAnswer(answer: AnswerMessage): Answer {
  const body = variantOf(answer, 'body');
  switch (body.type) {
    case 'refused':
      return { id: answer.id, body: decodeRefused(body) };
    case 'rejected':
      return { id: answer.id, body: present(body) as unknown as AnswerBody };
    case 'attached':
      return { id: answer.id, body: decodeAttached(body) };
    case 'lock':
      return { id: answer.id, body: { type: 'lock', lock: decodeLock(body.lock as Message | null) } };
    case 'locks': {
      const locks = (body.locks as readonly Message[]).map(decodeLock);
      return { id: answer.id, body: { type: 'locks', locks, more: body.more as boolean } };
    }
    case 'none':
      throw new MessageError(`answer ${answer.id} is of a kind that this program does not know`);
    default:
      return { id: answer.id, body: body as unknown as AnswerBody };
  }
}

function decodeAttached(body: Message): AnswerBody {
  const grants = (body.grants as readonly Message[]).map(decodeRevoking);
  return { ...body, grants } as unknown as Extract<AnswerBody, { type: 'attached' }>;
}

function decodeRefused(body: Message): Refused {
  const { delayedOnly, holder, ...rest } = present(body);
  if (delayedOnly === true) return { ...rest, holder: null } as unknown as Refused;
  const shown = holder === undefined ? {} : { holder: decodeHolder(holder as Message) };
  return { ...rest, ...shown } as unknown as Refused;
}

/** A notice of a newer server that this program could not act upon is dropped: the digests of rule S3 tell what matters. */
export function decodeNotice({ session, attach, event }: NoticeMessage): readonly SessionNotice[] {
  const decoded = event === null ? null : decodeEvent(event);
  return decoded === null ? [] : [{ session, attach, event: decoded }];
}

export function checked<Shape extends { readonly format: number }>(message: Message): Shape {
  checkIntegers(message);
  const frame = message as unknown as Shape;
  checkFormat(frame.format);
  return frame;
}

export function checkFormat(format: number): void {
  if (format === FORMAT_VERSION) return;
  throw new MessageError(`frames of format ${format}; this program speaks format ${FORMAT_VERSION}`);
}

/** Without what is absent: null messages, and the marks that proto-loader sets for optional fields. */
function present(message: Message): Message {
  const entries = Object.entries(message);
  return Object.fromEntries(entries.filter(([name, value]) => value !== null && !name.startsWith('_')));
}
