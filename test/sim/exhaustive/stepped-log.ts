/**
 * A handle on a log whose appends move only when they are told to: they reach the store, are answered, or their answer is lost. Everything
 * else it is asked is answered at once.
 */
import { LogUnavailableError } from '../../../src/log/errors.ts';
import {
  invoke,
  type StoreArguments,
  type StoreCaller,
  type StoreMethod,
  type StoreReply,
} from '../../../src/log/store.ts';
import { StoreLog } from '../../../src/log/store-log.ts';
import type { WatchedStore } from '../nodes/watched-log.ts';

interface Append {
  readonly reach: () => void;
  readonly answer: () => void;
  readonly lose: () => void;
  hasReached: boolean;
}

class SteppedCaller implements StoreCaller {
  readonly #store: WatchedStore;
  append: Append | null = null;

  constructor(store: WatchedStore) {
    this.#store = store;
  }

  call<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    if (method !== 'append') return this.#atOnce(method, args);
    return new Promise((resolve, reject) => {
      let settle = (): void => undefined;
      this.append = {
        hasReached: false,
        reach: () => {
          try {
            const reply = invoke(this.#store, method, args);
            settle = () => resolve(reply);
          } catch (error) {
            settle = () => reject(error);
          }
        },
        answer: () => settle(),
        lose: () => reject(new LogUnavailableError('the answer was lost')),
      };
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #atOnce<M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> {
    return invoke(this.#store, method, args);
  }
}

export class SteppedLog extends StoreLog {
  readonly #caller: SteppedCaller;

  constructor(store: WatchedStore) {
    const caller = new SteppedCaller(store);
    super(store.lineage, caller, {
      pause: () => Promise.resolve(),
      newId: () => `snapshot-${store.takeSerial()}`,
    });
    this.#caller = caller;
  }

  /** What is under way; null: nothing. */
  get underWay(): 'sent' | 'reached' | null {
    const { append } = this.#caller;
    if (append === null) return null;
    return append.hasReached ? 'reached' : 'sent';
  }

  reach(): void {
    const append = this.#caller.append as Append;
    append.hasReached = true;
    append.reach();
  }

  answer(): void {
    const append = this.#caller.append as Append;
    this.#caller.append = null;
    append.answer();
  }

  /** The log sends the same again (rule L2). */
  lose(): void {
    const append = this.#caller.append as Append;
    this.#caller.append = null;
    append.lose();
  }
}
