/** Rule C15: a group is at the highest level that each of its replicas can apply, and never goes back. */
import { describe, expect, test } from 'vitest';
import { type FrontEndStub, LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import type { Acquire } from '../../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, FORMAT_VERSION } from '../../api/limits.ts';
import { raiseTo } from './behaviour.ts';

describe('what the replicas support', () => {
  test.each([
    [1, [2], 1, 2],
    [1, [2, 3, 2], 3, 2],
    [1, [3, 1, 2], 3, null],
    [2, [2, 2], 2, null],
    // One that is not here may support anything.
    [1, [2, 2], 3, null],
    [1, [], 3, null],
    // A replica was rolled back after the level was raised: it cannot follow, but the level stands.
    [2, [1, 2], 2, null],
  ])('from level %i, with %j of %i: %j', (current, supported, replicas, level) => {
    expect(raiseTo(current, supported, replicas)).toEqual(
      level === null ? null : { type: 'raiseBehaviour', level },
    );
  });

  test('a group of nobody, or nonsense, is a mistake of ours', () => {
    expect(() => raiseTo(1, [], 0)).toThrow('at least one replica');
    expect(() => raiseTo(1, [Number.NaN], 1)).toThrow('supports behaviour level NaN');
    expect(() => raiseTo(1, [0], 1)).toThrow('supports behaviour level 0');
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

  test('of two waits for the other: what needs the level is available when both are here and support it', async () => {
    const bench = await LeaderBench.start({ config: SHARED, replicas: 2 });
    const { leader } = bench;
    const [own, other] = [bench.frontEnd(), bench.frontEnd()];
    const say = async (from: FrontEndStub, behaviour: number): Promise<void> => {
      leader.connect(from);
      leader.receive(from, { format: FORMAT_VERSION, groups: [], closed: [], allAttached: true, behaviour });
      await bench.runtime.pass(1);
    };
    await say(own, BEHAVIOUR_LEVEL_MAX);
    const session = await own.open(1);
    const ask = (key: string, differs: Partial<Acquire>) => own.acquire(1, { session, key, ...differs });
    const refused = { type: 'rejected', code: 'UNAVAILABLE' };
    expect(await ask('k1', { name: 'a', mode: 'shared' })).toMatchObject(refused);
    expect(await ask('k2', { name: 'a', reentrant: true })).toMatchObject(refused);
    expect(await ask('k3', { name: 'b' })).toMatchObject({ type: 'granted' });
    // Of an older version: it is here, and holds the level back.
    await say(other, 1);
    leader.disconnect(other);
    expect(leader.state.behaviour).toBe(1);
    // It comes back as a newer one.
    await say(other, BEHAVIOUR_LEVEL_MAX + 1);
    expect(leader.state.behaviour).toBe(BEHAVIOUR_LEVEL_MAX);
    expect(await ask('k1', { name: 'a', mode: 'shared' })).toMatchObject({ type: 'granted' });
    // It stays, whoever comes.
    leader.disconnect(other);
    await say(other, 1);
    expect(leader.state.behaviour).toBe(BEHAVIOUR_LEVEL_MAX);
  });
});
