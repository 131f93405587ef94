/** Rule C15: a group is at the highest level that each of its replicas can apply, and never goes back. */
import { describe, expect, test } from 'vitest';
import { acquireCommand } from '../../../test/support/core.ts';
import { attachCommand, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import { BEHAVIOUR_LEVEL_MAX } from '../../api/limits.ts';
import { raiseTo } from './behaviour.ts';

describe('what the replicas support', () => {
  test.each([
    [1, [2], 2],
    [1, [2, 3, 2], 2],
    [1, [3, 1, 2], null],
    [2, [2, 2], null],
    // A replica was rolled back after the level was raised: it cannot follow, but the level stands.
    [2, [1, 2], null],
  ])('from level %i, with %j: %j', (current, supported, level) => {
    expect(raiseTo(current, supported)).toEqual(level === null ? null : { type: 'raiseBehaviour', level });
  });

  test('nobody, or nonsense, is a mistake of ours', () => {
    expect(() => raiseTo(1, [])).toThrow('no replica says');
    expect(() => raiseTo(1, [Number.NaN])).toThrow('supports behaviour level NaN');
    expect(() => raiseTo(1, [0])).toThrow('supports behaviour level 0');
  });
});

const SHARED = { modes: ['exclusive', 'shared', 'semaphore'] } as const;

describe('a new leader', () => {
  test('alone raises the level to its own, in the entry after the take-over, once', async () => {
    const bench = await LeaderBench.start({ config: SHARED });
    const commands = () => bench.log.entries.map((entry) => entry.commands.map(({ type }) => type));
    expect(commands().slice(0, 3)).toEqual([['takeOver'], ['raiseBehaviour'], ['configure']]);
    expect(bench.leader.state.behaviour).toBe(BEHAVIOUR_LEVEL_MAX);
    await bench.lead();
    expect(commands()).toEqual([['takeOver']]);
    expect(bench.leader.state.behaviour).toBe(BEHAVIOUR_LEVEL_MAX);
  });

  test('with an older replica beside it serves what that one can apply, until it is gone', async () => {
    let levels = [BEHAVIOUR_LEVEL_MAX, 1];
    const bench = await LeaderBench.start({ config: SHARED, behaviourLevels: () => levels });
    const front = bench.frontEnd();
    const session = await front.open(1);
    const shared = { session, name: 'a', mode: 'shared' } as const;
    expect(bench.leader.state.behaviour).toBe(1);
    expect(await front.acquire(1, { ...shared, key: 'k1' })).toMatchObject({
      type: 'refused',
      code: 'INVALID',
      field: 'mode',
    });
    levels = [BEHAVIOUR_LEVEL_MAX];
    await bench.lead({ behaviourLevels: () => levels });
    const next = bench.frontEnd();
    await next.get(1, attachCommand(session, 2));
    expect(await next.get(1, acquireCommand({ ...shared, attach: 2, key: 'k2' }))).toMatchObject({
      type: 'granted',
    });
  });
});
