/**
 * The requests and answers of `proto/leasehold/v1/admin.proto` as TypeScript: what the services take and the client sends.
 * Units and meanings stand in the .proto file.
 */
import type { Position } from '../../api/wire.ts';
import type { ReplicaRole } from '../member/replica.ts';
import type { Message } from './proto.ts';

export interface OfNamespace {
  readonly namespace: string;
}

export interface NamespaceStatusMessage extends OfNamespace {
  readonly position: Position;
  readonly leading: boolean;
  readonly configVersion: number;
  readonly config: Message | null;
  readonly sessions: number;
  readonly held: number;
  readonly waiting: number;
  readonly names: number;
  readonly clients: number;
  readonly longestQueue: number;
  readonly lastToken: number;
  readonly logBytes: number;
  readonly snapshotBytes: number;
  readonly serverId: string;
  readonly role: ReplicaRole;
  /** 0 = the log does not answer. */
  readonly logIndex: number;
  readonly leader: string;
  readonly connected: boolean;
}

export interface MembersRequest extends OfNamespace {
  readonly onlySelf: boolean;
}

export interface MemberMessage {
  readonly serverId: string;
  readonly role: ReplicaRole | 'unreachable';
  readonly position: Position;
  readonly logIndex: number;
  readonly lag: number;
  readonly connected: boolean;
  readonly clients: number;
  readonly problem: string;
}

export interface MembersResponse {
  readonly members: readonly MemberMessage[];
  readonly logIndex: number;
}

export interface HandOverRequest extends OfNamespace {
  readonly to: string;
}

export interface HandOverResponse {
  readonly from: string;
  readonly to: string;
  readonly tookMs: number;
}

export interface AuditResponse {
  readonly hasCursor: boolean;
  readonly cursor: number;
  readonly logIndex: number;
  readonly lagBytes: number;
  readonly serverId: string;
  readonly sink: string;
}

export interface ForgetAuditResponse {
  readonly hadCursor: boolean;
  readonly cursor: number;
}

export interface SnapshotResponse {
  readonly index: number;
  readonly bytes: number;
  readonly tookMs: number;
}

export interface ConfigureRequest extends OfNamespace {
  readonly version: number;
  readonly config: Message | null;
}

export interface StatusResponse {
  readonly namespaces: readonly NamespaceStatusMessage[];
}

export interface GetLockRequest extends OfNamespace {
  readonly name: string;
}

export interface GetLockResponse {
  /** To be read by `decodeLock`. */
  readonly lock: Message;
}

export interface ListLocksRequest extends OfNamespace {
  readonly prefix: string;
  readonly after: string;
  readonly limit: number;
}

export interface ListLocksResponse {
  /** To be read by `decodeLock`. */
  readonly locks: readonly Message[];
  readonly more: boolean;
}

export interface ReadHistoryRequest extends OfNamespace {
  readonly from: number;
  readonly follow: boolean;
}

export interface BreakRequest extends OfNamespace {
  readonly name: string;
  readonly token: number;
  readonly now: boolean;
  readonly reason: string;
  readonly by: string;
}

export interface QuarantineRequest extends OfNamespace {
  readonly name: string;
  readonly reason: string;
}

export interface UnquarantineRequest extends OfNamespace {
  readonly name: string;
  readonly by: string;
}
