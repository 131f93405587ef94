/** Frames from front ends to the leader, to and from what the general codec takes: all of them but for what comes with every operation. */
import type { Identity } from '../../api/entry.ts';
import type {
  BulkReattachment,
  KeepaliveRequest,
  Mark,
  Position,
  Reattachment,
  RelayFrame,
  RelayGroup,
  RelayRequest,
} from '../../api/wire.ts';
import { variantOf } from './events.ts';
import { checked, encodeRequest, type RequestMessage } from './frames.ts';
import { type Message, MessageError } from './proto.ts';

interface RelayGroupMessage {
  readonly client: number;
  readonly requests: readonly RequestMessage[];
  readonly keepalive: KeepaliveRequest | null;
  readonly identity: Identity | null;
  readonly mark: Mark | null;
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
  readonly applied: number;
  readonly behaviour: number;
}

const NOWHERE: Position = { lineage: '', epoch: 0, index: 0 };

export function encodeRelayFrame({
  format,
  groups,
  closed,
  reattach,
  allAttached,
  applied,
  behaviour,
}: RelayFrame): Message {
  const encodedGroups = groups.map(({ client, requests, keepalive, identity, mark }) => ({
    client,
    requests: requests.map(encodeRequest),
    keepalive,
    identity,
    mark,
  }));
  return { format, groups: encodedGroups, closed, reattach, allAttached, applied, behaviour };
}

/** Throws MessageError, also for a request that this program does not know: its sender is a replica of this group. */
export function decodeRelayFrame(message: Message): RelayFrame {
  const { format, groups, closed, reattach, allAttached, applied, behaviour } =
    checked<RelayFrameMessage>(message);
  return {
    format,
    groups: groups.map(decodeRelayGroup),
    closed,
    ...(reattach === null ? {} : { reattach: decodeReattach(reattach) }),
    ...(allAttached ? { allAttached } : {}),
    ...(applied > 0 ? { applied } : {}),
    ...(behaviour > 0 ? { behaviour } : {}),
  };
}

function decodeReattach({ sessions, seen }: NonNullable<RelayFrameMessage['reattach']>): BulkReattachment {
  return { sessions, seen: seen ?? NOWHERE };
}

function decodeRelayGroup({ client, requests, keepalive, identity, mark }: RelayGroupMessage): RelayGroup {
  return {
    client,
    requests: requests.map(decodeRelayRequest),
    ...(keepalive === null ? {} : { keepalive }),
    ...(identity === null ? {} : { identity }),
    ...(mark === null ? {} : { mark }),
  };
}

export function decodeRelayRequest(request: RequestMessage): RelayRequest {
  const body = variantOf(request, 'body');
  if (body.type === 'none') {
    throw new MessageError(`request ${request.id} is of a kind that this program does not know`);
  }
  if (body.type === 'openSession' && body.identity === null) {
    throw new MessageError(`request ${request.id} opens a session for nobody`);
  }
  return { id: request.id, body: body as unknown as RelayRequest['body'] };
}
