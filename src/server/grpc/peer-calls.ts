/**
 * Calls between the replicas of one group for operators: what only the leader can answer is passed on to it, unchanged, and each
 * replica can be asked about itself. They use the address of the relay and its credentials, which applications do not have.
 */
import { Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { LockLog } from '../../log/port.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Dial } from '../security/tls.ts';
import type { Message, Protocol } from './proto.ts';
import { SERVER_ID_HEADER } from './relay-client.ts';
import { CHANNEL_OPTIONS } from './streams.ts';

/** A replica that has not answered by then is told of as unreachable. */
const ANSWER_MS_MAX = 8_000;
/** A snapshot takes as long as the state is large. */
const SNAPSHOT_MS_MAX = 140_000;
/** While nobody leads a call waits for so long. */
const LEADER_MS_MAX = 5_000;
const SEEK_MS = 100;

export interface PeerCallsOptions {
  readonly protocol: Protocol;
  readonly log: LockLog;
  readonly runtime: Runtime;
  /** Of this replica. */
  readonly serverId: string;
  /** Where the relay of each replica is, by server id. */
  readonly addresses: Readonly<Record<string, string>>;
  /** How a replica is dialled; asked for each call, since certificates may have been replaced. */
  readonly dial: (serverId: string) => Dial;
}

export class PeerCalls {
  readonly #options: PeerCallsOptions;

  constructor(options: PeerCallsOptions) {
    this.#options = options;
  }

  /** The other replicas. */
  get ids(): readonly string[] {
    return Object.keys(this.#options.addresses).filter((id) => id !== this.#options.serverId);
  }

  /**
   * Asks whoever leads, for as long as it takes to find one. Only a replica that says that it has done nothing is followed by another.
   * `isOwn`: called when this replica itself leads.
   */
  async askLeader(
    service: string,
    method: string,
    request: object,
    isOwn: () => Promise<Message>,
  ): Promise<Message> {
    const { log, runtime, serverId } = this.#options;
    const startedMs = runtime.clock.monotonicMs();
    for (;;) {
      const leader = await log.leader();
      try {
        if (leader !== null && leader.serverId === serverId) return await isOwn();
        if (leader !== null) {
          const withinMs = method === 'Snapshot' ? SNAPSHOT_MS_MAX : ANSWER_MS_MAX;
          return await this.ask(leader.serverId, service, method, request, withinMs);
        }
      } catch (error) {
        if (!isNotLeading(error) && !isNotConnected(error)) throw error;
      }
      if (runtime.clock.monotonicMs() - startedMs > LEADER_MS_MAX) {
        throw new LeaseholdError('UNAVAILABLE', 'no lock server leads this namespace right now');
      }
      await pause(runtime.timers, SEEK_MS);
    }
  }

  /** Rejects with gRPC's ServiceError. */
  ask(
    serverId: string,
    service: string,
    method: string,
    request: object,
    withinMs = ANSWER_MS_MAX,
  ): Promise<Message> {
    const { addresses, dial, protocol, runtime } = this.#options;
    const address = Object.hasOwn(addresses, serverId) ? addresses[serverId] : undefined;
    const definition = protocol.service(service)[method];
    if (definition === undefined) throw new RangeError(`proto/ defines no ${service}.${method}`);
    if (address === undefined) {
      throw new LeaseholdError(
        'UNAVAILABLE',
        `${serverId} leads, and is no replica of this group as configured`,
      );
    }
    const { credentials, options } = dial(serverId);
    const client = new Client(address, credentials, { ...CHANNEL_OPTIONS, ...options });
    const metadata = new Metadata();
    metadata.set(SERVER_ID_HEADER, this.#options.serverId);
    const { path, requestSerialize, responseDeserialize } = definition;
    const deadline = runtime.clock.wallMs() + withinMs;
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize as (bytes: Buffer) => Message,
        request,
        metadata,
        { deadline },
        (error, answer) => {
          client.close();
          if (error === null) resolve(answer as Message);
          else reject(error);
        },
      );
    });
  }
}

/** `ABORTED`: the replica does not lead, and has done nothing. */
function isNotLeading(error: unknown): boolean {
  return isServiceError(error) && error.code === status.ABORTED;
}

/** The leader that the log names has died: the call was never sent, and a successor is on its way. */
function isNotConnected(error: unknown): boolean {
  return isServiceError(error) && error.code === status.UNAVAILABLE && error.details.includes('ECONNREFUSED');
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'details' in error && 'code' in error && typeof error.code === 'number';
}
