/**
 * Frames by way of the general codec: what `frame-codec.test.ts` compares the codec written by hand with.
 */
import { FORMAT_VERSION } from '../../api/limits.ts';
import type {
  ClientFrame,
  KeepaliveAnswer,
  KeepaliveRequest,
  KeepaliveStatus,
  LeaderFrame,
  LeaderGroup,
  Mark,
  Position,
  ServerFrame,
} from '../../api/wire.ts';
import {
  type AnswerMessage,
  checked,
  decodeAnswer,
  decodeNotice,
  decodeRequest,
  encodeAnswer,
  encodeNotice,
  encodeRequest,
  type NoticeMessage,
  type RequestMessage,
} from './frames.ts';
import { type Message, MessageError } from './proto.ts';

type StatusMessage = Extract<KeepaliveStatus, { alive: true }> | Extract<KeepaliveStatus, { alive: false }>;

interface KeepaliveMessage {
  readonly number: number;
  readonly sessions: readonly StatusMessage[];
}

interface ClientFrameMessage {
  readonly format: number;
  readonly requests: readonly RequestMessage[];
  readonly keepalive: KeepaliveRequest | null;
  readonly mark: Mark | null;
}

interface ServerFrameMessage {
  readonly format: number;
  readonly position: Position | null;
  readonly leading: boolean;
  readonly answers: readonly AnswerMessage[];
  readonly notices: readonly NoticeMessage[];
  readonly keepalive: KeepaliveMessage | null;
  readonly mark: Mark | null;
  readonly halted: string;
}

interface LeaderGroupMessage {
  readonly client: number;
  readonly answers: readonly AnswerMessage[];
  readonly notices: readonly NoticeMessage[];
  readonly keepalives: readonly KeepaliveMessage[];
  readonly mark: Mark | null;
}

interface LeaderFrameMessage {
  readonly format: number;
  readonly position: Position | null;
  readonly groups: readonly LeaderGroupMessage[];
}

export function encodeClientFrame({ format, requests, keepalive, mark }: ClientFrame): Message {
  return { format, requests: requests.map(encodeRequest), keepalive, mark };
}

/** Throws MessageError. A request of an unknown kind becomes one that the front end refuses under its id. */
export function decodeClientFrame(message: Message): ClientFrame {
  const { format, requests, keepalive, mark } = checked<ClientFrameMessage>(message);
  return {
    format,
    requests: requests.map(decodeRequest),
    ...(keepalive === null ? {} : { keepalive }),
    ...(mark === null ? {} : { mark }),
  };
}

export function encodeServerFrame(frame: ServerFrame): Message {
  const { position, leading, answers, notices, keepalive, mark, halted } = frame;
  return {
    format: FORMAT_VERSION,
    position,
    leading,
    answers: answers.map(encodeAnswer),
    notices: notices.map(encodeNotice),
    keepalive,
    mark,
    halted,
  };
}

/** Throws MessageError, also for an answer that this program does not know: to guess at it could lose a grant. */
export function decodeServerFrame(message: Message): ServerFrame {
  const { position, leading, answers, notices, keepalive, mark, halted } =
    checked<ServerFrameMessage>(message);
  if (position === null) throw new MessageError('the frame does not say where in the log it is true');
  return {
    position,
    leading,
    answers: answers.map(decodeAnswer),
    notices: notices.flatMap(decodeNotice),
    ...(keepalive === null ? {} : { keepalive: decodeKeepalive(keepalive) }),
    ...(mark === null ? {} : { mark }),
    ...(halted === '' ? {} : { halted }),
  };
}

function decodeKeepalive({ number, sessions }: KeepaliveMessage): KeepaliveAnswer {
  const statuses = sessions.map(
    (status): KeepaliveStatus =>
      status.alive ? status : { session: status.session, attach: status.attach, alive: false },
  );
  return { number, sessions: statuses };
}

export function encodeLeaderFrame({ position, groups }: LeaderFrame): Message {
  const encodedGroups = groups.map(({ client, answers, notices, keepalives, mark }) => ({
    client,
    answers: answers.map(encodeAnswer),
    notices: notices.map(encodeNotice),
    keepalives,
    mark,
  }));
  return { format: FORMAT_VERSION, position, groups: encodedGroups };
}

/** Throws MessageError. */
export function decodeLeaderFrame(message: Message): LeaderFrame {
  const { position, groups } = checked<LeaderFrameMessage>(message);
  if (position === null) throw new MessageError('the frame does not say where in the log it is true');
  return { position, groups: groups.map(decodeLeaderGroup) };
}

function decodeLeaderGroup({ client, answers, notices, keepalives, mark }: LeaderGroupMessage): LeaderGroup {
  return {
    client,
    answers: answers.map(decodeAnswer),
    notices: notices.flatMap(decodeNotice),
    keepalives: keepalives.map(decodeKeepalive),
    ...(mark === null ? {} : { mark }),
  };
}
