/**
 * Which behaviour level a group may be at (rule C15): the highest that each of its replicas can apply. A replica of an older
 * program holds the level back, so two versions side by side never compute different states.
 */
import type { RaiseBehaviour } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';

/** The command that brings a group from `current` to what its replicas support, by their reports; null when it is there. */
export function raiseTo(current: number, supported: readonly number[]): RaiseBehaviour | null {
  assert(supported.length > 0, 'no replica says which behaviour it supports, not even this one');
  const level = Math.min(...supported);
  assert(Number.isSafeInteger(level) && level >= 1, `a replica supports behaviour level ${level}`);
  return level > current ? { type: 'raiseBehaviour', level } : null;
}
