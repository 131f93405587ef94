/**
 * Calls to etcd, made safe: every call has a deadline, nothing is ever repeated in here, and an answer from the past is no
 * answer. One member at a time: after a call that failed the next one goes to another member.
 *
 * npm `etcd3` is used for its typed KV and lease calls only. Its own fault handling repeats writes blindly, so it is the noop
 * policy here; its Election, Lock and `lost` event are not used (they answer by one to two TTL late).
 */
import { noop } from 'cockatiel';
import { Etcd3, type IOptions } from 'etcd3';
import type {
  IHashKVResponse,
  ILeaseKeepAliveRequest,
  ILeaseKeepAliveResponse,
  IRequestOp,
  IResponseHeader,
  ITxnRequest,
  ITxnResponse,
} from 'etcd3/lib/rpc.js';
import type { Clock, Timers } from '../../platform/runtime.ts';
import { LogUnavailableError } from '../errors.ts';

/** A page of entries at their largest. etcd itself has no limit on answers. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

export interface EtcdClientOptions {
  /** `http://host:port` or `https://host:port` of the members; the first is the nearest. */
  readonly endpoints: readonly string[];
  readonly clock: Clock;
  readonly timers: Timers;
  readonly credentials?: EtcdCredentials;
  /** Name in the certificates of the members, when it is not the host of the endpoint; for an address there must be one. */
  readonly serverName?: string | undefined;
  /** Deadline of one call. */
  readonly callMs?: number;
  /** After so long a read is given up, so that the next goes to another member; `callMs` unless it is less. */
  readonly readMs?: number;
}

/** PEM. */
export type EtcdCredentials = NonNullable<IOptions['credentials']>;

const CALL_MS_DEFAULT = 2_000;
/** A gigabyte takes ten seconds or so. */
const DEFRAGMENT_MS_MAX = 120_000;
/** Reading everything that a member holds, up to what integrity.ts lets be compared. */
const HASH_MS_MAX = 10_000;
/** Names of the alarms in a member's status. */
const NOSPACE = 'NOSPACE';
const CORRUPT = /memberID:(\d+)\s+alarm:CORRUPT/;

/** What a member says of its own storage. */
export interface MemberStatus {
  /** Place among the endpoints. */
  readonly number: number;
  readonly id: string;
  readonly endpoint: string;
  readonly version: string;
  readonly revision: number;
  /** Of the members' own consensus. */
  readonly isLeader: boolean;
  /** Size of the file, which is what the quota counts. */
  readonly fileBytes: number;
  /** Without the free pages that compaction has left in it. */
  readonly usedBytes: number;
  readonly isFull: boolean;
  /** Ids of the members that an alarm says are corrupt; this one may be among them. */
  readonly corrupt: readonly string[];
}

/** Of all that a member holds at one revision. Members of different compactions cannot be compared. */
export interface MemberHash {
  /** Place among the endpoints. */
  readonly number: number;
  readonly hash: string;
  readonly compactRevision: string;
}

/** A stream of keepalives, as etcd3 gives it. */
export interface KeepaliveStream {
  write(request: ILeaseKeepAliveRequest): void;
  on(event: 'data', listener: (answer: ILeaseKeepAliveResponse) => void): unknown;
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown;
  cancel(): void;
}

export class EtcdClient {
  readonly #endpoints: readonly string[];
  readonly #serverName: string | undefined;
  #members: readonly Etcd3[];
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #callMs: number;
  readonly #readMs: number;
  #current = 0;
  /** Highest revision that any answer showed. */
  #revision = 0n;
  /** Members that are not asked (case G16), by place. */
  #distrusted: ReadonlySet<number> = new Set();

  constructor(options: EtcdClientOptions) {
    const { endpoints, clock, timers, credentials, serverName, callMs = CALL_MS_DEFAULT } = options;
    if (endpoints.length === 0) throw new RangeError('no etcd endpoint is given');
    this.#clock = clock;
    this.#timers = timers;
    this.#callMs = callMs;
    this.#readMs = options.readMs ?? callMs;
    this.#endpoints = endpoints;
    this.#serverName = serverName;
    this.#members = this.#connect(credentials);
  }

  /** New connections show another certificate. Returns how to close the old ones, once what is under way on them has ended. */
  renew(credentials: EtcdCredentials): () => void {
    const old = this.#members;
    this.#members = this.#connect(credentials);
    return () => {
      for (const member of old) member.close();
    };
  }

  /**
   * `withinMs`: for so long it is waited for, never beyond the deadline of every call.
   * @throws LogUnavailableError the outcome is unknown.
   */
  txn(request: ITxnRequest, withinMs?: number): Promise<ITxnResponse> {
    return this.#call('transaction', (member, options) => member.kv.txn(request, options), withinMs);
  }

  /** Several reads at one revision. */
  async read(ranges: readonly NonNullable<IRequestOp['request_range']>[]) {
    const { responses } = await this.txn(
      { success: ranges.map((range) => ({ request_range: range })) },
      this.#readMs,
    );
    return responses.map(({ response_range: range }) => range.kvs);
  }

  /** Forgets what was overwritten and deleted before now (rule L5). */
  async compact(): Promise<void> {
    const revision = String(this.#revision);
    await this.#call('compaction', (member, options) => member.kv.compact({ revision }, options));
  }

  /** Of each member that answers: its backend file, and whether an alarm refuses writes. */
  async statuses(): Promise<readonly MemberStatus[]> {
    const answers = await Promise.allSettled(
      this.#members.map(async (member, number) => {
        const status = await member.maintenance.status({ deadline: this.#clock.wallMs() + this.#callMs });
        return {
          number,
          id: status.header.member_id,
          endpoint: this.#endpoints[number] as string,
          version: status.version,
          revision: Number(status.header.revision),
          isLeader: status.leader === status.header.member_id,
          fileBytes: Number(status.dbSize),
          usedBytes: Number(status.dbSizeInUse),
          isFull: status.errors.some((error) => error.includes(NOSPACE)),
          corrupt: status.errors.flatMap((error) => CORRUPT.exec(error)?.[1] ?? []),
        };
      }),
    );
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  }

  /** Of these members, as far as they answer: one after the other, since a member commits nothing while it reads all that it holds. */
  async hashes(members: readonly number[], revision: number): Promise<readonly MemberHash[]> {
    const hashes: MemberHash[] = [];
    for (const number of members) {
      const options = { deadline: this.#clock.wallMs() + HASH_MS_MAX };
      const answer = await hashOf(this.#members[number] as Etcd3, { revision }, options).catch(() => null);
      if (answer === null) continue;
      const { hash, compact_revision: compactRevision } = answer;
      hashes.push({ number, hash: String(hash), compactRevision: String(compactRevision) });
    }
    return hashes;
  }

  get memberCount(): number {
    return this.#members.length;
  }

  /** Members that are not asked any more, in place of those named before. All of them: every call fails, as in an outage. */
  distrust(members: ReadonlySet<number>): void {
    this.#distrusted = members;
    if (members.has(this.#current)) this.skipMember();
  }

  /** Writes the backend file of one member anew, without its free pages. That member answers nothing meanwhile. */
  async defragment(number: number): Promise<void> {
    const member = this.#members[number];
    if (member === undefined) throw new RangeError(`there is no etcd member ${number}`);
    if (number === this.#current) this.skipMember();
    const deadline = this.#clock.wallMs() + DEFRAGMENT_MS_MAX;
    await member.maintenance.defragment({ deadline }).catch((error: unknown) => {
      throw new LogUnavailableError(`an etcd member was not defragmented: ${String(error)}`, {
        cause: error,
      });
    });
  }

  /** Ends all alarms for want of space: writes are accepted again, unless a member is still over its quota. */
  async disarm(): Promise<void> {
    const { alarms } = await this.#call('list of alarms', (member, options) =>
      member.maintenance.alarm({ action: 'Get', alarm: 'None', memberID: 0 }, options),
    );
    for (const { alarm, memberID } of alarms) {
      if (String(alarm).toUpperCase() !== NOSPACE) continue;
      await this.#call('disarming', (member, options) =>
        member.maintenance.alarm({ action: 'Deactivate', alarm, memberID }, options),
      );
    }
  }

  async grantLease(ttlSeconds: number): Promise<string> {
    const { ID } = await this.#call('grant of a lease', (member, options) =>
      member.leaseClient.leaseGrant({ TTL: ttlSeconds }, options),
    );
    return ID;
  }

  async revokeLease(id: string): Promise<void> {
    await this.#call('revocation of a lease', (member, options) =>
      member.leaseClient.leaseRevoke({ ID: id }, options),
    );
  }

  /** One stream for all keepalives of a lease: one a call would stay open on the server (case I09). */
  async openKeepalives(): Promise<KeepaliveStream> {
    return (await this.#member.leaseClient.leaseKeepAlive()) as unknown as KeepaliveStream;
  }

  /** Takes the next member, after the one in use let a call down. */
  skipMember(): void {
    for (let tries = this.#members.length; tries > 0; tries--) {
      this.#current = (this.#current + 1) % this.#members.length;
      if (!this.#distrusted.has(this.#current)) return;
    }
  }

  close(): void {
    for (const member of this.#members) member.close();
  }

  get #member(): Etcd3 {
    if (this.#distrusted.has(this.#current)) {
      throw new LogUnavailableError('the members of etcd contradict each other, and no majority agrees');
    }
    return this.#members[this.#current] as Etcd3;
  }

  async #call<T extends { readonly header: IResponseHeader }>(
    what: string,
    call: (member: Etcd3, options: { readonly deadline: number }) => Promise<T>,
    withinMs = this.#callMs,
  ): Promise<T> {
    const member = this.#member;
    const known = this.#revision;
    let answer: T;
    try {
      const asked = call(member, { deadline: this.#clock.wallMs() + this.#callMs });
      answer = await (withinMs < this.#callMs ? this.#within(withinMs, asked) : asked);
    } catch (error) {
      if (member === this.#members[this.#current]) this.skipMember();
      throw new LogUnavailableError(`a ${what} was not answered by etcd: ${String(error)}`, { cause: error });
    }
    this.#refusePast(what, BigInt(answer.header.revision), known);
    return answer;
  }

  /**
   * Gives up waiting. The call itself goes on to its deadline: where that has passed, the library drops its connection, and the next call
   * would have to wait for another one, on a way that is slow.
   */
  async #within<T>(withinMs: number, answer: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = this.#timers.after(withinMs, () => reject(new Error(`no answer within ${withinMs} ms`)));
    try {
      return await Promise.race([answer, late]);
    } finally {
      timer.cancel();
    }
  }

  /**
   * A member that was stopped and goes on may answer from before its stop (case G15). What counts is what was known when the call was
   * sent: answers to calls under way at the same time may overtake each other.
   */
  #refusePast(what: string, revision: bigint, known: bigint): void {
    if (revision < known) {
      this.skipMember();
      throw new LogUnavailableError(`a ${what} was answered from revision ${revision}, which is past`);
    }
    if (revision > this.#revision) this.#revision = revision;
  }

  #connect(credentials: EtcdCredentials | undefined): readonly Etcd3[] {
    const named = this.#serverName === undefined ? {} : { 'grpc.ssl_target_name_override': this.#serverName };
    return this.#endpoints.map(
      (endpoint) =>
        new Etcd3({
          hosts: endpoint,
          faultHandling: { global: noop, host: () => noop },
          // Without the library's account of every message, which nobody asks for.
          grpcOptions: {
            'grpc.max_receive_message_length': ANSWER_BYTES_MAX,
            'grpc.enable_channelz': 0,
            ...named,
          },
          ...(credentials === undefined ? {} : { credentials }),
        }),
    );
  }
}

/** What `maintenance.hashKV` is for; it calls a method that gRPC's client does not have under this name. */
function hashOf(
  { maintenance }: Etcd3,
  request: { readonly revision: number },
  options: { readonly deadline: number },
): Promise<IHashKVResponse> {
  const { client } = maintenance as unknown as { readonly client: ICallable };
  return client.exec('Maintenance', 'HashKV', request, options);
}

interface ICallable {
  exec(service: string, method: string, request: object, options: object): Promise<IHashKVResponse>;
}
