/** The naive model against src/core/README.md: the check of entries, and what remains at the end. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../api/entry.ts';
import { acquire, brief, close, LINEAGE, modelGroup, release } from './model.fixture.ts';
import { NaiveModel } from './naive-model.ts';

const entry = {
  lineage: LINEAGE,
  epoch: 1,
  index: 1,
  at: 0,
  behaviour: 1,
  format: 1,
  commands: [] as Command[],
};
const takeOver = (epoch: number): Command => ({
  type: 'takeOver',
  epoch,
  unixSeconds: 0,
  tokenFloor: 0,
  reason: 'test',
});

describe('step 0, the check of the entry', () => {
  const first = { ...entry, commands: [takeOver(1)] };
  const begun = (): NaiveModel => {
    const model = new NaiveModel(LINEAGE);
    model.apply({ ...first, at: 100 });
    return model;
  };

  it.each([
    ['another lineage', { lineage: 'other' }],
    ['an index left out', { index: 3 }],
    ['an index again', { index: 1 }],
    ['an older epoch', { epoch: 0 }],
    ['a higher epoch without takeOver', { epoch: 2 }],
    [
      'a higher epoch with takeOver in second place',
      { epoch: 2, commands: [{ type: 'resign', epoch: 2 }, takeOver(2)] },
    ],
    ['time going back', { at: 99 }],
    ['an unknown format', { format: 2 }],
    ['an unknown behaviour', { behaviour: 2 }],
    ['behaviour 0', { behaviour: 0 }],
  ] as const)('throws for %s and changes nothing', (_what, wrong) => {
    const model = begun();
    const before = model.view();
    expect(() => model.apply({ ...entry, index: 2, at: 100, ...wrong } as typeof entry)).toThrow(
      'naive model',
    );
    expect(model.view()).toEqual(before);
    expect(model.apply({ ...entry, index: 2, at: 100 }).events).toEqual([]);
  });

  it('takes a takeOver behind quarantines for the first command', () => {
    const commands: Command[] = [{ type: 'quarantine', name: 'a', reason: '' }, takeOver(2)];
    const { events } = begun().apply({ ...entry, index: 2, at: 100, epoch: 2, commands });
    expect(events.map(({ type }) => type)).toEqual(['quarantined', 'tookOver']);
  });

  it('takes the same time and a later epoch that begins with takeOver', () => {
    const { events } = begun().apply({ ...entry, index: 2, at: 100, epoch: 5, commands: [takeOver(5)] });
    expect(events).toEqual([{ type: 'tookOver', epoch: 5, token: 0, reason: 'test' }]);
  });

  it('applies leading quarantine commands before due timers', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a', { waitMs: 5_000 }));
    const quarantine: Command = { type: 'quarantine', name: 'a', reason: 'threw' };
    const { events, results } = group.apply(5_000, quarantine, quarantine, release(1, 'a', 1));
    expect(brief(events)).toEqual(['quarantined a', 'refused a s2 QUARANTINED', 'released a s1 t1 release']);
    expect(results).toEqual([{ type: 'done' }, { type: 'done' }, { type: 'done' }]);
  });

  it('applies other quarantine commands in their place', () => {
    const group = modelGroup();
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a', { waitMs: 5_000 }));
    const { events } = group.apply(5_000, release(1, 'a', 1), { type: 'quarantine', name: 'a', reason: '' });
    expect(brief(events)).toEqual(['refused a s2 WAIT_TIMEOUT', 'released a s1 t1 release', 'quarantined a']);
  });
});

it('nothing remains of a name that is neither held, waited for, delayed nor quarantined (rule C16)', () => {
  const group = modelGroup({ config: { lockDelayMs: 1_000 } });
  group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a'), close(1, false), close(2));
  group.apply(1_000);
  expect(group.model.view()).toMatchObject({
    held: [],
    queues: [],
    delayed: [],
    quarantined: [],
    sessions: [],
    timers: 0,
    backlog: [],
  });
});
