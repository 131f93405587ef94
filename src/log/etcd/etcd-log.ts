/**
 * The etcd engine: a log that survives the loss of a minority of its members. One handle per lock server; whoever holds the key `leader` writes.
 */

import { pause } from '../../platform/pause.ts';
import type { Logger, Random } from '../../platform/runtime.ts';
import { LogUnavailableError } from '../errors.ts';
import type { LockLog } from '../port.ts';
import type { StoreArguments, StoreCaller, StoreMethod, StoreReply } from '../store.ts';
import { StoreLog } from '../store-log.ts';
import { Campaign } from './campaign.ts';
import { EtcdClient, type EtcdClientOptions, type EtcdCredentials } from './client.ts';
import { EtcdStore } from './etcd-store.ts';
import { Keys } from './keys.ts';

/** 128 random bits. */
const ID_BYTES = 16;
const LEASE_TTL_SECONDS_DEFAULT = 5;
/** etcd's own default. */
export const QUOTA_BYTES_DEFAULT = 2 * 1024 ** 3;
const PREFIX_DEFAULT = 'leasehold/';

export interface EtcdLogOptions extends EtcdClientOptions {
  readonly random: Random;
  readonly logger: Logger;
  /** Where the group's keys lie; ends in a slash. */
  readonly prefix?: string;
  readonly leaseTtlSeconds?: number;
  /** Calls its argument with other credentials when their files were replaced; returns how to end that. */
  readonly onCredentials?: ((renew: (credentials: EtcdCredentials) => void) => () => void) | undefined;
  /** What etcd was started with (`--quota-backend-bytes`). */
  readonly quotaBytes?: number;
  /** While the log is being opened: this member did not answer, and the next one is asked. */
  readonly onSilent?: (endpoint: string) => void;
}

/** Calls on connections with old credentials have ended by then, one way or the other. */
const RETIRE_MS = 15_000;

/**
 * Opens the log of a lock group, makes it if there is none.
 * @throws LogUnavailableError etcd did not answer; CorruptLogError.
 */
export async function openEtcdLog(options: EtcdLogOptions): Promise<LockLog> {
  const { timers, random, logger, prefix = PREFIX_DEFAULT } = options;
  const client = new EtcdClient(options);
  const keys = new Keys(prefix);
  const store = new EtcdStore(client, keys, options.quotaBytes ?? QUOTA_BYTES_DEFAULT, options.clock);
  const leaseTtlSeconds = options.leaseTtlSeconds ?? LEASE_TTL_SECONDS_DEFAULT;
  const forget = options.onCredentials?.((credentials) => {
    const close = client.renew(credentials);
    timers.after(RETIRE_MS, close);
  });
  const campaign = new Campaign({ client, keys, timers, random, leaseTtlSeconds });
  const lineage = await firstAnswer(options, () => store.lineage(random, ID_BYTES)).catch(
    (error: unknown) => {
      forget?.();
      client.close();
      throw error;
    },
  );
  return new StoreLog(lineage, new EtcdCaller(client, store, campaign), {
    pause: (delayMs) => pause(timers, delayMs),
    newId: () => random.hex(ID_BYTES),
    onOutage: (change) => {
      const fields = { prefix, lineage, method: change.method };
      if (change.type === 'began') logger.warn({ ...fields, error: change.error }, 'the log does not answer');
      else logger.info(fields, 'the log answers again');
    },
  });
}

/** Each member gets one try: the first ones may be down. */
async function firstAnswer<T>({ endpoints, onSilent }: EtcdLogOptions, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LogUnavailableError) || tries === endpoints.length) throw error;
      onSilent?.(endpoints[tries - 1] as string);
    }
  }
}

class EtcdCaller implements StoreCaller {
  readonly #client: EtcdClient;
  readonly #store: EtcdStore;
  readonly #campaign: Campaign;

  constructor(client: EtcdClient, store: EtcdStore, campaign: Campaign) {
    this.#client = client;
    this.#store = store;
    this.#campaign = campaign;
  }

  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    if (method === 'campaign') {
      return this.#campaign.win(...(args as StoreArguments<'campaign'>)) as Promise<StoreReply<M>>;
    }
    return Reflect.apply(this.#store[method as Exclude<StoreMethod, 'campaign'>], this.#store, args);
  }

  async close(): Promise<void> {
    this.#campaign.close();
    this.#client.close();
  }
}
