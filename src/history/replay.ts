/**
 * Comparing what the core did with what the naive model does for the same entry (rule C14, design section 9).
 * Events are compared whole; of results only what a client may rely on, since wording is each model's own.
 */
import type { CommandResult, LockEvent } from '../api/entry.ts';
import type { NaiveEntry, NaiveModel } from './naive-model.ts';

export interface Difference {
  readonly index: number;
  /** `model`: the naive model threw where the core went on. */
  readonly what: 'event' | 'result' | 'model';
  /** Place in the list of events or results, from 0. */
  readonly place: number;
  /** Undefined: the list ended before. */
  readonly core: LockEvent | CommandResult | undefined;
  readonly naive: LockEvent | CommandResult | undefined;
  readonly message: string;
}

/**
 * A result without its wording: of refusals the code, and what HELD and QUEUE_FULL say about the lock. `field` and `limit` are
 * compared where the contract names them, that is where the naive model gives them.
 */
function sameResult(core: CommandResult, naive: CommandResult): boolean {
  if (core.type !== 'refused' || naive.type !== 'refused') return sameValue(core, naive);
  const isSame = (field: 'code' | 'holder' | 'waiters' | 'lockDelayMs'): boolean =>
    sameValue(core[field], naive[field]);
  return (
    isSame('code') &&
    isSame('holder') &&
    isSame('waiters') &&
    isSame('lockDelayMs') &&
    (naive.field === undefined || core.field === naive.field) &&
    (naive.limit === undefined || core.limit === naive.limit)
  );
}

/** Equal as JSON values, whatever the order of the fields. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = Object.entries(a);
  const right = new Map<string, unknown>(Object.entries(b));
  return (
    left.length === right.size &&
    left.every(([key, value]) => right.has(key) && sameValue(value, right.get(key)))
  );
}

export function sameEvents(a: readonly LockEvent[], b: readonly LockEvent[]): boolean {
  return sameValue(a, b);
}

function differenceOf<T extends LockEvent | CommandResult>(
  what: 'event' | 'result',
  index: number,
  lists: { readonly core: readonly T[]; readonly naive: readonly T[] },
  same: (core: T, naive: T) => boolean,
): Difference | null {
  const { core, naive } = lists;
  for (let place = 0; place < Math.max(core.length, naive.length); place++) {
    const left = core[place];
    const right = naive[place];
    if (left !== undefined && right !== undefined && same(left, right)) continue;
    const message =
      `entry ${index}, ${what} ${place}: the core has ${JSON.stringify(left) ?? 'none'}, ` +
      `the naive model ${JSON.stringify(right) ?? 'none'}`;
    return { index, what, place, core: left, naive: right, message };
  }
  return null;
}

/**
 * Applies `entry` to the model and compares with what the core made of it. Null: they agree.
 * After a difference the model is at another state than the core, so further comparisons mean nothing.
 */
export function compareWithModel(
  model: NaiveModel,
  entry: NaiveEntry,
  events: readonly LockEvent[],
  results: readonly CommandResult[],
): Difference | null {
  let outcome: ReturnType<NaiveModel['apply']>;
  try {
    outcome = model.apply(entry);
  } catch (error) {
    const message = `entry ${entry.index}: ${error instanceof Error ? error.message : String(error)}`;
    return { index: entry.index, what: 'model', place: 0, core: undefined, naive: undefined, message };
  }
  return (
    differenceOf('event', entry.index, { core: events, naive: outcome.events }, sameValue) ??
    differenceOf('result', entry.index, { core: results, naive: outcome.results }, sameResult)
  );
}
