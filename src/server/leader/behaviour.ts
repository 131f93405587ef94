/**
 * Which behaviour level a group may be at (rule C15): the highest that each of its replicas can apply. A replica of an older
 * program holds the level back, so two versions side by side never compute different states.
 */
import type { RaiseBehaviour } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';

/**
 * The command that brings a group of so many replicas from `current` to what they support, by their reports; null: it is there, or a
 * replica is missing. One that does not report may be of any version, or about to come back as one.
 */
export function raiseTo(
  current: number,
  supported: readonly number[],
  replicas: number,
): RaiseBehaviour | null {
  assert(replicas >= 1, 'a group has at least one replica');
  if (supported.length < replicas) return null;
  const level = Math.min(...supported);
  assert(Number.isSafeInteger(level) && level >= 1, `a replica supports behaviour level ${level}`);
  return level > current ? { type: 'raiseBehaviour', level } : null;
}
