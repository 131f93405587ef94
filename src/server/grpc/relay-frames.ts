/**
 * The frames between front end and leader as messages of `proto/leasehold/v1/relay.proto`, and back: the same parts as those between client
 * and front end, grouped by client.
 */
import { FORMAT_VERSION } from '../../api/limits.ts';
import type {
  BulkReattachment,
  KeepaliveRequest,
  LeaderFrame,
  LeaderGroup,
  Position,
  Reattachment,
  RelayFrame,
  RelayGroup,
  RelayRequest,
} from '../../api/wire.ts';
import { variantOf } from './events.ts';
import {
  type AnswerMessage,
  checked,
  decodeAnswer,
  decodeKeepalive,
  decodeNotice,
  encodeAnswer,
  encodeNotice,
  type KeepaliveMessage,
  type NoticeMessage,
} from './frames.ts';
import { type Message, MessageError } from './proto.ts';

interface RelayGroupMessage {
  readonly client: number;
  readonly requests: readonly (Message & { readonly id: number })[];
  readonly keepalive: KeepaliveRequest | null;
}

interface RelayFrameMessage {
  readonly format: number;
  readonly groups: readonly RelayGroupMessage[];
  readonly closed: readonly number[];
  readonly reattach: {
    readonly sessions: readonly Reattachment[];
    readonly seen: Position | null;
  } | null;
  readonly allAttached: boolean;
}

interface LeaderGroupMessage {
  readonly client: number;
  readonly answers: readonly AnswerMessage[];
  readonly notices: readonly NoticeMessage[];
  readonly keepalives: readonly KeepaliveMessage[];
}

interface LeaderFrameMessage {
  readonly format: number;
  readonly position: Position | null;
  readonly groups: readonly LeaderGroupMessage[];
}

const NOWHERE: Position = { lineage: '', epoch: 0, index: 0 };

export function encodeRelayFrame({ format, groups, closed, reattach, allAttached }: RelayFrame): Message {
  const encodedGroups = groups.map(({ client, requests, keepalive }) => ({
    client,
    requests: requests.map(({ id, body }) => ({ id, [body.type]: body })),
    keepalive,
  }));
  return { format, groups: encodedGroups, closed, reattach, allAttached };
}

/** Throws MessageError, also for a request that this program does not know: its sender is a replica of this group. */
export function decodeRelayFrame(message: Message): RelayFrame {
  const { format, groups, closed, reattach, allAttached } = checked<RelayFrameMessage>(message);
  return {
    format,
    groups: groups.map(decodeRelayGroup),
    closed,
    ...(reattach === null ? {} : { reattach: decodeReattach(reattach) }),
    ...(allAttached ? { allAttached } : {}),
  };
}

function decodeReattach({ sessions, seen }: NonNullable<RelayFrameMessage['reattach']>): BulkReattachment {
  return { sessions, seen: seen ?? NOWHERE };
}

function decodeRelayGroup({ client, requests, keepalive }: RelayGroupMessage): RelayGroup {
  const decoded = requests.map(decodeRequest);
  return keepalive === null ? { client, requests: decoded } : { client, requests: decoded, keepalive };
}

function decodeRequest(request: RelayGroupMessage['requests'][number]): RelayRequest {
  const body = variantOf(request, 'body');
  if (body.type === 'none') {
    throw new MessageError(`request ${request.id} is of a kind that this program does not know`);
  }
  if (body.type === 'openSession' && body.identity === null) {
    throw new MessageError(`request ${request.id} opens a session for nobody`);
  }
  return { id: request.id, body: body as unknown as RelayRequest['body'] };
}

export function encodeLeaderFrame({ position, groups }: LeaderFrame): Message {
  const encodedGroups = groups.map(({ client, answers, notices, keepalives }) => ({
    client,
    answers: answers.map(encodeAnswer),
    notices: notices.map(encodeNotice),
    keepalives,
  }));
  return { format: FORMAT_VERSION, position, groups: encodedGroups };
}

/** Throws MessageError. */
export function decodeLeaderFrame(message: Message): LeaderFrame {
  const { position, groups } = checked<LeaderFrameMessage>(message);
  if (position === null) throw new MessageError('the frame does not say where in the log it is true');
  return { position, groups: groups.map(decodeLeaderGroup) };
}

function decodeLeaderGroup({ client, answers, notices, keepalives }: LeaderGroupMessage): LeaderGroup {
  return {
    client,
    answers: answers.map(decodeAnswer),
    notices: notices.flatMap(decodeNotice),
    keepalives: keepalives.map(decodeKeepalive),
  };
}
