/**
 * The parts that frames consist of, as bytes: requests, answers, notices. What comes with every operation is written and read by
 * hand (hot-messages.ts), the rest by the general codec.
 */
import type { Buffer } from 'node:buffer';
import type { Acquire, Cancel, LockEvent, Release } from '../../api/entry.ts';
import type {
  Answer,
  AnswerBody,
  ClientRequest,
  KeepaliveAnswer,
  KeepaliveRequest,
  Mark,
  Position,
  RelayRequest,
  SessionNotice,
} from '../../api/wire.ts';
import {
  type AnswerMessage,
  decodeAnswer,
  decodeNotice,
  encodeAnswer,
  encodeNotice,
  encodeRequest,
  type NoticeMessage,
  type RequestMessage,
} from './frames.ts';
import {
  readAcquire,
  readCancel,
  readGrantedEvent,
  readOneNumber,
  readRelease,
  writeAcquire,
  writeCancel,
  writeGrantedEvent,
  writeOneNumber,
  writeRelease,
} from './hot-messages.ts';
import { checkIntegers, type Message, MessageError } from './proto.ts';
import { lengthTag, numberTag, type ProtoReader, type ProtoWriter } from './proto-bytes.ts';
import { writeKeepaliveAnswer, writeKeepaliveRequest, writeMark, writePosition } from './stream-messages.ts';

const N1 = numberTag(1);
const N2 = numberTag(2);
const L1 = lengthTag(1);
const L2 = lengthTag(2);
const L3 = lengthTag(3);
const L4 = lengthTag(4);
const L5 = lengthTag(5);
const L6 = lengthTag(6);

/** Rare messages are counted by their bytes, four to a field. */
const BYTES_PER_FIELD_LOG2 = 2;

export interface GeneralCodec {
  serialize(message: Message): Buffer;
  deserialize(bytes: Buffer): Message;
}

/** In frames of clients and in groups of front ends requests have the same field numbers. */
export function writeRequests(
  to: ProtoWriter,
  requests: readonly (ClientRequest | RelayRequest)[],
  general: GeneralCodec,
): void {
  for (const request of requests) {
    if (!isHot(request)) {
      to.message(L2, general.serialize(encodeRequest(request)));
      continue;
    }
    const begun = to.begin(L2);
    to.number(N1, request.id);
    writeHotBody(to, request.body);
    to.end(begun);
  }
}

type HotBody = Acquire | Release | Cancel;
type HotRequest = ClientRequest & { readonly body: HotBody };

function isHot(request: ClientRequest | RelayRequest): request is HotRequest {
  const { type } = request.body;
  return type === 'acquire' || type === 'release' || type === 'cancel';
}

function writeHotBody(to: ProtoWriter, body: HotBody): void {
  if (body.type === 'acquire') {
    const begun = to.begin(L2);
    writeAcquire(to, body);
    to.end(begun);
  } else if (body.type === 'release') {
    const begun = to.begin(L3);
    writeRelease(to, body);
    to.end(begun);
  } else {
    const begun = to.begin(L4);
    writeCancel(to, body);
    to.end(begun);
  }
}

export function readRequest<Request extends ClientRequest | RelayRequest>(
  from: ProtoReader,
  general: GeneralCodec,
  decode: (message: RequestMessage) => Request,
): Request {
  const end = from.end();
  const start = from.at;
  let id = 0;
  let body: HotBody | null = null;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) id = from.number();
    else if (tag === L2) body = readAcquire(from);
    else if (tag === L3) body = readRelease(from);
    else if (tag === L4) body = readCancel(from);
    else {
      body = null;
      break;
    }
  }
  if (body === null) return decode(readGeneral<RequestMessage>(from, { start, end }, general));
  from.ended(end);
  return { id, body } as Request;
}

function readGeneral<Shape>(
  from: ProtoReader,
  { start, end }: { readonly start: number; readonly end: number },
  general: GeneralCodec,
): Shape {
  from.countFields((end - start) >> BYTES_PER_FIELD_LOG2);
  const message = general.deserialize(from.slice(start, end));
  checkIntegers(message);
  from.at = end;
  return message as Shape;
}

export function writeKeepalive(to: ProtoWriter, keepalive: KeepaliveRequest): void {
  const begun = to.begin(L3);
  writeKeepaliveRequest(to, keepalive);
  to.end(begun);
}

export function writeAt(to: ProtoWriter, position: Position): void {
  const begun = to.begin(L2);
  writePosition(to, position);
  to.end(begun);
}

export function writeAnswer(to: ProtoWriter, tag: number, answer: Answer, general: GeneralCodec): void {
  const { id, body } = answer;
  if (body.type !== 'done' && body.type !== 'granted' && body.type !== 'queued') {
    to.message(tag, general.serialize(encodeAnswer(answer)));
    return;
  }
  const begun = to.begin(tag);
  to.number(N1, id);
  const inner = to.begin(body.type === 'done' ? L2 : body.type === 'granted' ? L5 : L6);
  if (body.type === 'granted') writeOneNumber(to, body.token);
  else if (body.type === 'queued') writeOneNumber(to, body.position);
  to.end(inner);
  to.end(begun);
}

const DONE: AnswerBody = { type: 'done' };

export function readAnswer(from: ProtoReader, general: GeneralCodec): Answer {
  const end = from.end();
  const start = from.at;
  let id = 0;
  let body: AnswerBody | null = null;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) id = from.number();
    else if (tag === L5) body = { type: 'granted', token: readOneNumber(from) };
    else if (tag === L6) body = { type: 'queued', position: readOneNumber(from) };
    else if (tag === L2) {
      from.skip(tag);
      body = DONE;
    } else {
      body = null;
      break;
    }
  }
  if (body === null) return decodeAnswer(readGeneral<AnswerMessage>(from, { start, end }, general));
  from.ended(end);
  return { id, body };
}

export function writeNotice(
  to: ProtoWriter,
  tag: number,
  notice: SessionNotice,
  general: GeneralCodec,
): void {
  const { session, attach, event } = notice;
  if (event.type !== 'granted') {
    to.message(tag, general.serialize(encodeNotice(notice)));
    return;
  }
  const begun = to.begin(tag);
  to.number(N1, session);
  to.number(N2, attach);
  const inner = to.begin(L3);
  const granted = to.begin(L1);
  writeGrantedEvent(to, event);
  to.end(granted);
  to.end(inner);
  to.end(begun);
}

/** None: a notice that this program does not know. */
export function readNotice(from: ProtoReader, general: GeneralCodec): readonly SessionNotice[] {
  const end = from.end();
  const start = from.at;
  let [session, attach] = [0, 0];
  let event: LockEvent | null = null;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) session = from.number();
    else if (tag === N2) attach = from.number();
    else if (tag === L3) {
      const endOfEvent = from.end();
      event = from.at < endOfEvent && from.number() === L1 ? readGrantedEvent(from) : null;
      if (event === null || from.at !== endOfEvent) {
        event = null;
        break;
      }
    } else {
      event = null;
      break;
    }
  }
  if (event === null) return decodeNotice(readGeneral<NoticeMessage>(from, { start, end }, general));
  from.ended(end);
  return [{ session, attach, event }];
}

export function writeKept(to: ProtoWriter, tag: number, keepalive: KeepaliveAnswer): void {
  const begun = to.begin(tag);
  writeKeepaliveAnswer(to, keepalive);
  to.end(begun);
}

export function writeMarkAt(to: ProtoWriter, tag: number, mark: Mark): void {
  const begun = to.begin(tag);
  writeMark(to, mark);
  to.end(begun);
}

export function placed(position: Position | null): Position {
  if (position === null) throw new MessageError('the frame does not say where in the log it is true');
  return position;
}
