/**
 * Which namespaces a process serves, and how its services answer calls about them.
 */
import { type handleUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';
import type { Command, CommandResult, HistoryEntry } from '../../api/entry.ts';
import { LeaseholdError } from '../../api/errors.ts';
import type { AnswerBody, ReadQuery, ReadResult } from '../../api/wire.ts';
import type { ServerGauges } from '../../platform/metrics.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import type { AuditProgress, HandedOver, MadeSnapshot } from '../member/group-replica.ts';
import type { ReplicaStatus } from '../member/replica.ts';
import type { Watcher } from '../member/watchers.ts';
import { checkIntegers, type Message } from './proto.ts';
import { CallError, toServiceError } from './status.ts';

/** A lock server as the services see it. In `leasehold dev` it always leads; in a group another one may. */
export interface ServedReplica {
  /** Its own figures, whether it leads or not. */
  status(): ReplicaStatus | Promise<ReplicaStatus>;
  /** Null: it has not read the log yet. */
  gauges(): ServerGauges | null;
  /** Rejects with NotLeadingError. */
  submit(command: Command): Promise<CommandResult>;
  /** Rejects with NotLeadingError. */
  read(query: ReadQuery): Promise<ReadResult>;
  history(fromIndex: number): AsyncIterable<HistoryEntry>;
  watch(watcher: Watcher): () => void;
  /** In a group. All reject with NotLeadingError. */
  handOver?(to: string): Promise<HandedOver>;
  snapshot?(): Promise<MadeSnapshot>;
  audit?(): Promise<AuditProgress>;
  /** Resolves to where the cursor stood; null: there was none. Rejects with AuditRunningError. */
  forgetAudit?(): Promise<number | null>;
}

/** The other replicas of a group. */
export interface Peers {
  readonly ids: readonly string[];
  ask(
    serverId: string,
    service: string,
    method: string,
    request: object,
    withinMs?: number,
  ): Promise<Message>;
  /** Asks whoever leads; `isOwn` answers when that is this replica. */
  askLeader(
    service: string,
    method: string,
    request: object,
    isOwn: () => Promise<Message>,
  ): Promise<Message>;
}

export interface Served {
  readonly alias: string;
  readonly replica: ServedReplica;
  /** Left out: it is alone. */
  readonly peers?: Peers;
  /** These calls were passed on by another replica: nothing goes round in circles. */
  readonly isPassedOn?: boolean;
  /** Whether Admin.Configure is how it gets its configuration; otherwise it comes from a file. */
  readonly isConfigurable?: boolean;
}

/** The namespaces served now: reloaded manifests add and remove some. */
export type ServedNow = () => readonly Served[];

/** The one under `alias`, or the only one when `alias` is empty. Throws NAMESPACE_NOT_FOUND with the list of them. */
export function findServed(served: readonly Served[], alias: string): Served {
  const found =
    alias === '' && served.length === 1 ? served[0] : served.find((candidate) => candidate.alias === alias);
  if (found !== undefined) return found;
  const list = served.map((candidate) => candidate.alias).sort();
  const here = list.length === 0 ? 'none is served here' : `served here: ${list.join(', ')}`;
  const what = alias === '' ? 'name a namespace' : `no namespace ${alias}`;
  throw new LeaseholdError('NAMESPACE_NOT_FOUND', `${what}; ${here}`);
}

/** A unary method: its errors become gRPC statuses, numbers over 2^53 are refused. */
export function unary<Request>(
  work: (request: Request) => Message | Promise<Message>,
): handleUnaryCall<Request, Message> {
  const answer = async (request: Request, callback: sendUnaryData<Message>): Promise<void> => {
    let response: Message;
    try {
      checkIntegers(request);
      response = await work(request);
    } catch (error) {
      callback(toServiceError(error));
      return;
    }
    callback(null, response);
  };
  return (call, callback) => void answer(call.request, callback);
}

/** A unary method about one namespace that only its leader can answer: elsewhere the request is passed on, as it came. */
export function leaderOnly<Request extends { readonly namespace: string }>(
  method: { readonly service: string; readonly name: string },
  served: ServedNow,
  work: (served: Served, request: Request) => Promise<Message>,
): handleUnaryCall<Request, Message> {
  return unary(async (request) => {
    const found = findServed(served(), request.namespace);
    const { peers } = found;
    if (peers === undefined || found.isPassedOn === true) return work(found, request);
    return peers.askLeader(method.service, method.name, request, () => work(found, request));
  });
}

/** What a replica answered; throws what it refused. `asking` rejects only when the replica cannot answer any more. */
export async function answerOf(asking: Promise<AnswerBody>): Promise<AnswerBody> {
  const body = await asking.catch((error: unknown) => {
    if (error instanceof NotLeadingError) throw error;
    throw new LeaseholdError('UNAVAILABLE', error instanceof Error ? error.message : String(error));
  });
  if (body.type !== 'refused' && body.type !== 'rejected') return body;
  throw new LeaseholdError(body.code === 'SUPERSEDED' ? 'UNAVAILABLE' : body.code, body.message);
}

export function noAuditOf(alias: string): CallError {
  return new CallError(
    status.FAILED_PRECONDITION,
    `${alias} exports no audit: only the lock servers of a group do`,
  );
}
