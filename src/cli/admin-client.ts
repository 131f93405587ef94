/**
 * The client of the services for operators, on a lock server's socket or at its address.
 */
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { NamespaceConfig } from '../api/config.ts';
import type { HistoryEntry } from '../api/entry.ts';
import type { LockView } from '../api/wire.ts';
import { systemClock } from '../platform/system-runtime.ts';
import { decodeConfig, encodeConfig } from '../server/grpc/config.ts';
import { decodeHistoryEntry } from '../server/grpc/events.ts';
import type {
  AuditResponse,
  BreakRequest,
  ForgetAuditResponse,
  GetLockRequest,
  GetLockResponse,
  HandOverResponse,
  ListLocksRequest,
  ListLocksResponse,
  MembersResponse,
  NamespaceStatusMessage,
  QuarantineRequest,
  ReadHistoryRequest,
  SnapshotResponse,
  StatusResponse,
  UnquarantineRequest,
} from '../server/grpc/messages.ts';
import { checkIntegers, loadProtocol, type Message } from '../server/grpc/proto.ts';
import { socketTarget } from '../server/grpc/socket.ts';
import { decodeLock } from '../server/grpc/views.ts';
import type { Dial } from '../server/security/tls.ts';

/** A call that has no answer by then has none to come: the log does not commit. */
const ANSWER_WITHIN_MS = 10_000;
/** A full state, written at the pace of rule L5. */
const SNAPSHOT_WITHIN_MS = 150_000;
/** One entry of 2,000 commands and as many consequences, with the longest names, several times over. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;

export type NamespaceStatus = Omit<NamespaceStatusMessage, 'config'> & {
  readonly config: NamespaceConfig | null;
};

/** Calls reject with gRPC's ServiceError; a namespace left empty is the only one served. */
export class AdminClient {
  readonly #protocol = loadProtocol();
  readonly #client: Client;

  /** `place`: path of a socket; with `dial`, `host:port`. Throws when the path is too long for a socket. Connects with the first call. */
  constructor(place: string, dial: Dial | null = null) {
    const target = dial === null ? socketTarget(place) : place;
    this.#client = new Client(target, dial?.credentials ?? credentials.createInsecure(), {
      'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
      ...dial?.options,
    });
  }

  /** One namespace, or all of them when `namespace` is empty. */
  async status(namespace: string): Promise<readonly NamespaceStatus[]> {
    const { namespaces } = await this.#call<StatusResponse>('Inspect', 'Status', { namespace });
    return namespaces.map(({ config, ...status }) => ({
      ...status,
      config: config === null ? null : decodeConfig(config),
    }));
  }

  async getLock(request: GetLockRequest): Promise<LockView> {
    return decodeLock((await this.#call<GetLockResponse>('Inspect', 'GetLock', request)).lock);
  }

  async listLocks(
    request: ListLocksRequest,
  ): Promise<{ readonly locks: readonly LockView[]; readonly more: boolean }> {
    const { locks, more } = await this.#call<ListLocksResponse>('Inspect', 'ListLocks', request);
    return { locks: locks.map(decodeLock), more };
  }

  async members(namespace: string): Promise<MembersResponse> {
    return this.#call<MembersResponse>('Inspect', 'Members', { namespace, onlySelf: false });
  }

  async handOver(namespace: string, to: string): Promise<HandOverResponse> {
    return this.#call<HandOverResponse>('Admin', 'HandOver', { namespace, to });
  }

  async snapshot(namespace: string): Promise<SnapshotResponse> {
    return this.#call<SnapshotResponse>('Admin', 'Snapshot', { namespace }, SNAPSHOT_WITHIN_MS);
  }

  async audit(namespace: string): Promise<AuditResponse> {
    return this.#call<AuditResponse>('Inspect', 'Audit', { namespace });
  }

  async forgetAudit(namespace: string): Promise<ForgetAuditResponse> {
    return this.#call<ForgetAuditResponse>('Admin', 'ForgetAudit', { namespace });
  }

  async configure(namespace: string, version: number, config: NamespaceConfig | null): Promise<void> {
    const encoded = config === null ? null : encodeConfig(config);
    await this.#call('Admin', 'Configure', { namespace, version, config: encoded });
  }

  async breakLock(request: BreakRequest): Promise<void> {
    await this.#call('Admin', 'Break', request);
  }

  async quarantine(request: QuarantineRequest): Promise<void> {
    await this.#call('Admin', 'Quarantine', request);
  }

  async unquarantine(request: UnquarantineRequest): Promise<void> {
    await this.#call('Admin', 'Unquarantine', request);
  }

  /** Entries as they arrive; with `follow` it ends only with the server, when its reader stops, or when `signal` fires. */
  async *readHistory(request: ReadHistoryRequest, signal?: AbortSignal): AsyncGenerator<HistoryEntry> {
    const { path, requestSerialize, responseDeserialize } = this.#method('History', 'Read');
    const stream = this.#client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => Message,
      request,
    );
    const cancel = (): void => stream.cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      for await (const message of stream) yield decodeHistoryEntry(message as Message);
    } finally {
      signal?.removeEventListener('abort', cancel);
      // Cancelling is itself reported as an error, and nobody listens any more.
      stream.on('error', () => undefined);
      stream.cancel();
    }
  }

  close(): void {
    this.#client.close();
  }

  #call<Response>(
    service: string,
    name: string,
    request: object,
    withinMs = ANSWER_WITHIN_MS,
  ): Promise<Response> {
    const { path, requestSerialize, responseDeserialize } = this.#method(service, name);
    const deadline = systemClock.wallMs() + withinMs;
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize as (bytes: Buffer) => Response,
        request,
        new Metadata(),
        { deadline },
        (error, response) => {
          if (error !== null) return reject(error);
          checkIntegers(response);
          resolve(response as Response);
        },
      );
    });
  }

  #method(service: string, name: string) {
    const method = this.#protocol.service(`leasehold.v1.${service}`)[name];
    if (method === undefined) throw new RangeError(`proto/ defines no ${service}.${name}`);
    return method;
  }
}
