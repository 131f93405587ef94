/** A client stream as its front end knows it, and what it passes on of it. */
import type { ClientCommand, Identity } from '../../api/entry.ts';
import type {
  ClientHandler,
  ClientRequest,
  Mark,
  Position,
  ReadQuery,
  RelayFrame,
  RelayGroup,
  RelayRequest,
} from '../../api/wire.ts';
import { sha256 } from '../../core/index.ts';
import type { SharedLimiter } from './client-limiters.ts';
import type { ClientMemory } from './client-memory.ts';

/** The leader as a front end sees it; in one process the leader itself, in a group a stream to it. */
export interface LeaderPort {
  readonly position: Position;
  send(frame: RelayFrame): void;
}

export interface Client {
  readonly number: number;
  readonly identity: Identity;
  readonly handler: ClientHandler;
  readonly limiter: SharedLimiter;
  readonly memory: ClientMemory;
  /** Wall time after which what it proved counts no more for anything new; infinite when nothing had to be proved. */
  readonly provenUntilMs: number;
  /** The leader that knows its identity. */
  introducedTo: LeaderPort | null;
  /** What it showed at first, or was given since: shown to each leader that comes (rule S10). */
  mark: Mark | null;
  /** Of the mark that it showed: its sessions from before this stream are of that lineage. Empty: it showed none. */
  lineage: string;
  hasSent: boolean;
}

/** The first group on a leader's stream says who its client is. */
export function groupOf(
  client: Client,
  leader: LeaderPort,
  parts: Pick<RelayGroup, 'requests' | 'keepalive' | 'mark'>,
): RelayGroup {
  const { number, identity, introducedTo } = client;
  if (introducedTo === leader) return { client: number, ...parts };
  client.introducedTo = leader;
  return { client: number, ...parts, identity };
}

/** Turns a client's request into what the leader takes. */
export function complete({ id, body }: ClientRequest, identity: Identity): RelayRequest {
  return { id, body: toCommand(body, identity) };
}

function toCommand(body: ClientRequest['body'], identity: Identity): ClientCommand | ReadQuery {
  if (body.type === 'open') {
    const { client, ttlMs, maxHoldMs, secretHash } = body;
    return { type: 'openSession', client, identity, ttlMs, maxHoldMs, secretHash };
  }
  if (body.type === 'attachWithSecret') {
    const { session, attach, secret } = body;
    return { type: 'attach', session, attach, secretHash: sha256(secret) };
  }
  return body;
}
