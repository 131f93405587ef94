/**
 * Winning the log: the key `leader` is free, and this server's put is the first. It hangs on the server's lease, so it
 * goes when its owner is silent for that long, or at once when somebody revokes the lease (rule S7).
 */

import type { IKeyValue } from 'etcd3/lib/rpc.js';
import { pause } from '../../platform/pause.ts';
import type { Random, Timers } from '../../platform/runtime.ts';
import { LogClosedError, LogUnavailableError } from '../errors.ts';
import { CorruptLogError, type LeaderRecord, type Leadership } from '../port.ts';
import type { EtcdClient } from './client.ts';
import { decodeJson, encodeJson, type Keys } from './keys.ts';
import { ServerLease } from './server-lease.ts';
import { hasValue, isAbsent } from './transactions.ts';

/** How often a server that waits looks whether the leader is gone: one read of two small keys. */
const LOOK_MS = 50;

/** For so many looks, a second or so, a server holds back for the successor that the one before has named. */
const HELD_BACK_LOOKS = 20;

export interface CampaignOptions {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly timers: Timers;
  readonly random: Random;
  /** A leader that is cut off is gone after this long. etcd grants no less than one and a half election timeouts. */
  readonly leaseTtlSeconds: number;
}

export class Campaign {
  readonly #options: CampaignOptions;
  /** What this handle campaigns or leads with. */
  #lease: ServerLease | null = null;
  #hasWon = false;
  /** The newest wish for a successor, and how often it was seen. */
  #wish = { revision: '', looks: 0 };
  #isClosed = false;

  constructor(options: CampaignOptions) {
    this.#options = options;
  }

  /** Resolves once this server leads. A leadership that this handle had before ends first. */
  async win(serverId: string): Promise<Leadership> {
    const { timers, random } = this.#options;
    if (this.#hasWon) {
      await this.#lease?.revoke().catch(orGone);
      this.#lease = null;
      this.#hasWon = false;
    }
    for (;;) {
      if (this.#isClosed) throw new LogClosedError('this log is closed');
      const leadership = await this.#try(serverId);
      if (leadership !== null) {
        this.#hasWon = true;
        return leadership;
      }
      // Spread out, so that two who wait do not look in step.
      await pause(timers, LOOK_MS * (0.5 + random.fraction()));
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#lease?.close();
  }

  /** Null: somebody else leads. */
  async #try(serverId: string): Promise<Leadership | null> {
    const { client, keys } = this.#options;
    const [leaders, epochs, successors] = await client.read([
      { key: keys.leader },
      { key: keys.epoch },
      { key: keys.successor },
    ]);
    const leader = leaders?.[0];
    if (leader !== undefined) {
      if (leader.lease === '0') {
        // It would never go away by itself (case H11).
        throw new CorruptLogError('the key leader has no lease, so no lock server wrote it: delete it');
      }
      const { epoch } = decodeJson<LeaderRecord>(leader, { serverId, epoch: 0 });
      // An earlier try of this campaign got through, and its answer did not.
      return leader.lease === this.#lease?.id ? { serverId, epoch, fence: leader.create_revision } : null;
    }
    if (this.#holdsBack(serverId, successors?.[0])) return null;
    const lease = await this.#ownLease();
    const known = epochs?.[0];
    const epoch = Number(known?.value.toString() ?? 0) + 1;
    if (!Number.isSafeInteger(epoch)) throw new CorruptLogError('the key epoch holds no number');
    try {
      const { succeeded, header } = await client.txn({
        compare: [
          isAbsent(keys.leader),
          known === undefined ? isAbsent(keys.epoch) : hasValue(keys.epoch, known.value),
        ],
        success: [
          { request_put: { key: keys.leader, value: encodeJson({ serverId, epoch }), lease: lease.id } },
          { request_put: { key: keys.epoch, value: Buffer.from(String(epoch)) } },
          { request_delete_range: { key: keys.successor } },
          // Rule L3: what the one before was writing is given up.
          { request_delete_range: { key: keys.openSnapshot } },
        ],
      });
      return succeeded ? { serverId, epoch, fence: header.revision } : null;
    } catch (error) {
      this.#forgetLostLease(error);
      throw error;
    }
  }

  /** Bounded, since the one that was named may be gone. */
  #holdsBack(serverId: string, wish: IKeyValue | undefined): boolean {
    if (wish === undefined || wish.value.toString() === serverId) return false;
    if (this.#wish.revision !== wish.mod_revision) this.#wish = { revision: wish.mod_revision, looks: 0 };
    this.#wish.looks++;
    return this.#wish.looks <= HELD_BACK_LOOKS;
  }

  async #ownLease(): Promise<ServerLease> {
    const { client, timers, leaseTtlSeconds } = this.#options;
    this.#lease ??= await ServerLease.grant(client, timers, leaseTtlSeconds);
    // Closed while it was on its way.
    if (this.#isClosed) this.#lease.close();
    return this.#lease;
  }

  /** Stopped for longer than its lease, a server campaigns with a new one (case G17). */
  #forgetLostLease(error: unknown): void {
    if (!isLeaseGone(error)) return;
    this.#lease?.close();
    this.#lease = null;
  }
}

function isLeaseGone(error: unknown): boolean {
  return error instanceof LogUnavailableError && String(error.cause).includes('requested lease not found');
}

function orGone(error: unknown): void {
  if (!isLeaseGone(error)) throw error;
}
