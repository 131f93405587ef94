/**
 * Frames as bytes. What comes with every operation is written and read by hand (hot-messages.ts); what is rare goes through the
 * general codec, message by message, or as a whole frame where the frame itself is a rare one.
 */
import type { Buffer } from 'node:buffer';
import type { Identity } from '../../api/entry.ts';
import { FORMAT_VERSION } from '../../api/limits.ts';
import type {
  Answer,
  ClientFrame,
  ClientRequest,
  KeepaliveAnswer,
  KeepaliveRequest,
  LeaderFrame,
  LeaderGroup,
  Mark,
  Position,
  RelayFrame,
  RelayGroup,
  RelayRequest,
  ServerFrame,
  SessionNotice,
} from '../../api/wire.ts';
import {
  type GeneralCodec,
  placed,
  readAnswer,
  readNotice,
  readRequest,
  writeAnswer,
  writeAt,
  writeKeepalive,
  writeKept,
  writeMarkAt,
  writeNotice,
  writeRequests,
} from './frame-parts.ts';
import { checkFormat, decodeRequest } from './frames.ts';
import type { Protocol } from './proto.ts';
import { lengthTag, numberTag, ProtoReader, ProtoWriter } from './proto-bytes.ts';
import { decodeRelayFrame, decodeRelayRequest, encodeRelayFrame } from './relay-frames.ts';
import {
  FIELDS_PER_FRAME_MAX,
  ITEMS_PER_FRAME_MAX,
  readIdentity,
  readKeepaliveAnswer,
  readKeepaliveRequest,
  readMark,
  readPosition,
  tooMany,
  writeIdentity,
} from './stream-messages.ts';

const N1 = numberTag(1);
const N3 = numberTag(3);
const N5 = numberTag(5);
const N6 = numberTag(6);
const N7 = numberTag(7);
const L2 = lengthTag(2);
const L3 = lengthTag(3);
const L4 = lengthTag(4);
const L5 = lengthTag(5);
const L6 = lengthTag(6);
const L7 = lengthTag(7);
const L8 = lengthTag(8);

/** Frames of one kind as bytes, and back. */
export interface Codec<Frame> {
  encode(frame: Frame): Buffer;
  /** Throws MessageError. */
  decode(bytes: Buffer): Frame;
}

export interface FrameCodecs {
  readonly client: Codec<ClientFrame>;
  readonly server: Codec<ServerFrame>;
  readonly relay: Codec<RelayFrame>;
  readonly leader: Codec<LeaderFrame>;
}

/** The general codec, for messages that are rare. */
interface General {
  readonly request: GeneralCodec;
  readonly relayRequest: GeneralCodec;
  readonly answer: GeneralCodec;
  readonly notice: GeneralCodec;
  readonly relayFrame: GeneralCodec;
}

/** One for a process: it shares one buffer. */
export function frameCodecs(protocol: Protocol): FrameCodecs {
  const message = (name: string): GeneralCodec => protocol.message(`leasehold.v1.${name}`);
  const general: General = {
    request: message('ClientRequest'),
    relayRequest: message('RelayRequest'),
    answer: message('Answer'),
    notice: message('SessionNotice'),
    relayFrame: message('RelayFrame'),
  };
  const to = new ProtoWriter();
  const codec = <Frame>(
    write: (to: ProtoWriter, frame: Frame, general: General) => Buffer | null,
    read: (from: ProtoReader, general: General) => Frame,
    fieldsMax?: number,
  ): Codec<Frame> => ({
    encode: (frame) => {
      to.reset();
      return write(to, frame, general) ?? to.copy();
    },
    decode: (bytes) => read(new ProtoReader(bytes, fieldsMax), general),
  });
  return {
    client: codec(writeClientFrame, readClientFrame, FIELDS_PER_FRAME_MAX),
    server: codec(writeServerFrame, readServerFrame),
    relay: codec(writeRelayFrame, readRelayFrame),
    leader: codec(writeLeaderFrame, readLeaderFrame),
  };
}

function writeClientFrame(to: ProtoWriter, frame: ClientFrame, general: General): null {
  to.number(N1, frame.format);
  writeRequests(to, frame.requests, general.request);
  if (frame.keepalive !== undefined) writeKeepalive(to, frame.keepalive);
  if (frame.mark !== undefined) writeMarkAt(to, L4, frame.mark);
  return null;
}

function readClientFrame(from: ProtoReader, general: General): ClientFrame {
  let format = 0;
  const requests: ClientRequest[] = [];
  let keepalive: KeepaliveRequest | undefined;
  let mark: Mark | undefined;
  while (from.at < from.length) {
    const tag = from.tag();
    if (tag === N1) format = from.number();
    else if (tag === L2) requests.push(readRequest(from, general.request, decodeRequest));
    else if (tag === L3) keepalive = readKeepaliveRequest(from);
    else if (tag === L4) mark = readMark(from);
    else from.skip(tag);
    if (requests.length > ITEMS_PER_FRAME_MAX) throw tooMany('requests');
  }
  checkFormat(format);
  return {
    format,
    requests,
    ...(keepalive === undefined ? {} : { keepalive }),
    ...(mark === undefined ? {} : { mark }),
  };
}

function writeServerFrame(to: ProtoWriter, frame: ServerFrame, general: General): null {
  to.number(N1, FORMAT_VERSION);
  writeAt(to, frame.position);
  to.bool(N3, frame.leading);
  for (const answer of frame.answers) writeAnswer(to, L4, answer, general.answer);
  for (const notice of frame.notices) writeNotice(to, L5, notice, general.notice);
  if (frame.keepalive !== undefined) writeKept(to, L6, frame.keepalive);
  if (frame.mark !== undefined) writeMarkAt(to, L7, frame.mark);
  to.text(L8, frame.halted ?? '');
  return null;
}

function readServerFrame(from: ProtoReader, general: General): ServerFrame {
  let format = 0;
  let position: Position | null = null;
  let leading = false;
  const answers: Answer[] = [];
  const notices: SessionNotice[] = [];
  let keepalive: KeepaliveAnswer | undefined;
  let mark: Mark | undefined;
  let halted = '';
  while (from.at < from.length) {
    const tag = from.tag();
    if (tag === N1) format = from.number();
    else if (tag === L2) position = readPosition(from);
    else if (tag === N3) leading = from.bool();
    else if (tag === L4) answers.push(readAnswer(from, general.answer));
    else if (tag === L5) notices.push(...readNotice(from, general.notice));
    else if (tag === L6) keepalive = readKeepaliveAnswer(from);
    else if (tag === L7) mark = readMark(from);
    else if (tag === L8) halted = from.text();
    else from.skip(tag);
  }
  checkFormat(format);
  return {
    position: placed(position),
    leading,
    answers,
    notices,
    ...(keepalive === undefined ? {} : { keepalive }),
    ...(mark === undefined ? {} : { mark }),
    ...(halted === '' ? {} : { halted }),
  };
}

function writeRelayFrame(to: ProtoWriter, frame: RelayFrame, general: General): Buffer | null {
  const { format, groups, closed, reattach, allAttached = false, applied = 0, behaviour = 0 } = frame;
  if (reattach !== undefined) return general.relayFrame.serialize(encodeRelayFrame(frame));
  to.number(N1, format);
  for (const { client, requests, keepalive, identity, mark } of groups) {
    const begun = to.begin(L2);
    to.number(N1, client);
    writeRequests(to, requests, general.relayRequest);
    if (keepalive !== undefined) writeKeepalive(to, keepalive);
    if (identity !== undefined) writeIdentity(to, L4, identity);
    if (mark !== undefined) writeMarkAt(to, L5, mark);
    to.end(begun);
  }
  if (closed.length > 0) to.numbers(L3, closed);
  to.bool(N5, allAttached);
  to.number(N6, applied);
  to.number(N7, behaviour);
  return null;
}

function readRelayFrame(from: ProtoReader, general: General): RelayFrame {
  let format = 0;
  const groups: RelayGroup[] = [];
  const closed: number[] = [];
  let allAttached = false;
  let applied = 0;
  let behaviour = 0;
  while (from.at < from.length) {
    const tag = from.tag();
    if (tag === N1) format = from.number();
    else if (tag === L2) groups.push(readRelayGroup(from, general.relayRequest));
    else if (tag === L3) from.numbers(closed);
    else if (tag === N3) closed.push(from.number());
    else if (tag === L4) return decodeRelayFrame(general.relayFrame.deserialize(from.all()));
    else if (tag === N5) allAttached = from.bool();
    else if (tag === N6) applied = from.number();
    else if (tag === N7) behaviour = from.number();
    else from.skip(tag);
  }
  checkFormat(format);
  return {
    format,
    groups,
    closed,
    ...(allAttached ? { allAttached } : {}),
    ...(applied > 0 ? { applied } : {}),
    ...(behaviour > 0 ? { behaviour } : {}),
  };
}

function readRelayGroup(from: ProtoReader, general: GeneralCodec): RelayGroup {
  const end = from.end();
  let client = 0;
  const requests: RelayRequest[] = [];
  let keepalive: KeepaliveRequest | undefined;
  let identity: Identity | undefined;
  let mark: Mark | undefined;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) client = from.number();
    else if (tag === L2) requests.push(readRequest(from, general, decodeRelayRequest));
    else if (tag === L3) keepalive = readKeepaliveRequest(from);
    else if (tag === L4) identity = readIdentity(from);
    else if (tag === L5) mark = readMark(from);
    else from.skip(tag);
  }
  from.ended(end);
  return {
    client,
    requests,
    ...(keepalive === undefined ? {} : { keepalive }),
    ...(identity === undefined ? {} : { identity }),
    ...(mark === undefined ? {} : { mark }),
  };
}

function writeLeaderFrame(to: ProtoWriter, { position, groups }: LeaderFrame, general: General): null {
  to.number(N1, FORMAT_VERSION);
  writeAt(to, position);
  for (const { client, answers, notices, keepalives, mark } of groups) {
    const begun = to.begin(L3);
    to.number(N1, client);
    for (const answer of answers) writeAnswer(to, L2, answer, general.answer);
    for (const notice of notices) writeNotice(to, L3, notice, general.notice);
    for (const keepalive of keepalives) writeKept(to, L4, keepalive);
    if (mark !== undefined) writeMarkAt(to, L5, mark);
    to.end(begun);
  }
  return null;
}

function readLeaderFrame(from: ProtoReader, general: General): LeaderFrame {
  let format = 0;
  let position: Position | null = null;
  const groups: LeaderGroup[] = [];
  while (from.at < from.length) {
    const tag = from.tag();
    if (tag === N1) format = from.number();
    else if (tag === L2) position = readPosition(from);
    else if (tag === L3) groups.push(readLeaderGroup(from, general));
    else from.skip(tag);
  }
  checkFormat(format);
  return { position: placed(position), groups };
}

function readLeaderGroup(from: ProtoReader, general: General): LeaderGroup {
  const end = from.end();
  let client = 0;
  const answers: Answer[] = [];
  const notices: SessionNotice[] = [];
  const keepalives: KeepaliveAnswer[] = [];
  let mark: Mark | undefined;
  while (from.at < end) {
    const tag = from.tag();
    if (tag === N1) client = from.number();
    else if (tag === L2) answers.push(readAnswer(from, general.answer));
    else if (tag === L3) notices.push(...readNotice(from, general.notice));
    else if (tag === L4) keepalives.push(readKeepaliveAnswer(from));
    else if (tag === L5) mark = readMark(from);
    else from.skip(tag);
  }
  from.ended(end);
  const group = { client, answers, notices, keepalives };
  return mark === undefined ? group : { ...group, mark };
}
