/** The comparison of a core's outcome with the naive model's. */
import { describe, expect, it } from 'vitest';
import type { CommandResult, LockEvent } from '../api/entry.ts';
import {
  acquire,
  configure,
  LINEAGE,
  ModelGroup,
  modelGroup,
  namespaceConfig,
  openSession,
} from './model.fixture.ts';
import { NaiveModel } from './naive-model.ts';
import { compareWithModel, sameEvents } from './replay.ts';

/** A model that has applied the beginning of a group, the next entry, and what a faultless core would make of it. */
function next() {
  const commands = [acquire(1, 'k1', 'a'), acquire(2, 'k2', 'a', { waitMs: 0 })];
  const { events, results } = modelGroup().now(...commands);
  const group: ModelGroup = modelGroup();
  const { behaviour } = group;
  const entry = {
    lineage: LINEAGE,
    epoch: 1,
    index: group.index + 1,
    at: 0,
    behaviour,
    format: 1,
    commands,
  };
  return { model: group.model, entry, events: [...events], results: [...results] };
}

describe('compareWithModel', () => {
  it('finds no difference where there is none, whatever the wording and the order of fields', () => {
    const { model, entry, events, results } = next();
    const reworded = results.map(
      (result): CommandResult =>
        result.type === 'refused' ? { ...result, message: 'taken', limit: 3, field: 'x' } : result,
    );
    const reordered = events.map(
      (event) => Object.fromEntries(Object.entries(event).reverse()) as unknown as LockEvent,
    );
    expect(compareWithModel(model, entry, reordered, reworded)).toBeNull();
  });

  it('goes on from entry to entry', () => {
    const model = new NaiveModel(LINEAGE);
    const group = new ModelGroup();
    group.takeOver();
    group.now(configure(1, namespaceConfig()), openSession());
    const [first, second] = group.history;
    const base = { lineage: LINEAGE, epoch: 1, at: 0, behaviour: 1, format: 1 };
    const takeOver = { type: 'takeOver', epoch: 1, unixSeconds: 0, tokenFloor: 0, reason: 'test' } as const;
    const done: CommandResult = { type: 'done' };
    expect(
      compareWithModel(model, { ...base, index: 1, commands: [takeOver] }, first?.events ?? [], [done]),
    ).toBeNull();
    const commands = [configure(1, namespaceConfig()), openSession()];
    expect(
      compareWithModel(model, { ...base, index: 2, commands }, second?.events ?? [], [
        done,
        { type: 'opened', session: 1 },
      ]),
    ).toBeNull();
  });

  it('names the first event that differs', () => {
    const { model, entry, events, results } = next();
    const wrong = events.map((event) => (event.type === 'granted' ? { ...event, token: 9 } : event));
    expect(compareWithModel(model, entry, wrong, results)).toMatchObject({
      index: 5,
      what: 'event',
      place: 0,
      core: { token: 9 },
      naive: { token: 1 },
      message: expect.stringContaining('entry 5, event 0') as string,
    });
  });

  it('sees an event that is missing, and one too many', () => {
    const missing = next();
    expect(
      compareWithModel(missing.model, missing.entry, missing.events.slice(1), missing.results)?.place,
    ).toBe(0);
    const less = next();
    expect(compareWithModel(less.model, less.entry, less.events.slice(0, 1), less.results)).toMatchObject({
      place: 1,
      core: undefined,
    });
    const more = next();
    expect(
      compareWithModel(more.model, more.entry, [...more.events, ...more.events], more.results),
    ).toMatchObject({ place: 2, naive: undefined });
  });

  it('names the first result that differs, by type, code or token', () => {
    for (const [place, wrong] of [
      [0, { type: 'granted', token: 2 }],
      [1, { type: 'refused', code: 'QUEUE_FULL', message: '' }],
      [1, { type: 'queued', position: 1 }],
    ] as const) {
      const { model, entry, events, results } = next();
      const changed = results.map((result, at) => (at === place ? wrong : result));
      expect(compareWithModel(model, entry, events, changed)).toMatchObject({ what: 'result', place });
    }
  });

  it('reports an entry that only the core could apply', () => {
    const { model, entry, events, results } = next();
    expect(compareWithModel(model, { ...entry, at: -1 }, events, results)).toMatchObject({
      what: 'model',
      message: expect.stringContaining('group time went back') as string,
    });
  });
});

it('compares what HELD says about the lock, and the field where the contract names it', () => {
  const command = acquire(2, 'k9', 'a', { mode: 'semaphore' });
  for (const [differs, isSame] of [
    [{}, true],
    [{ message: 'other' }, true],
    [{ holder: null }, false],
    [{ waiters: 4 }, false],
    [{ lockDelayMs: 1 }, false],
  ] as const) {
    const { model, entry, events, results } = next();
    const [first, second] = results;
    const changed = [first, { ...second, ...differs }] as CommandResult[];
    expect(compareWithModel(model, entry, events, changed) === null).toBe(isSame);
  }
  for (const field of ['mode', 'permits', undefined]) {
    const { model, entry } = next();
    const refusal = { name: 'a', session: 2, key: 'k9', code: 'INVALID', fromQueue: false } as const;
    const result = { type: 'refused', code: 'INVALID', message: '' } as const;
    const given: CommandResult = field === undefined ? result : { ...result, field };
    const entryOfOne = { ...entry, commands: [command] };
    const difference = compareWithModel(model, entryOfOne, [{ type: 'refused', ...refusal }], [given]);
    expect(difference === null).toBe(field === 'mode');
  }
});

it('sameEvents compares values, lengths and kinds', () => {
  const event: LockEvent = { type: 'delayed', name: 'a', until: 5 };
  expect(sameEvents([event], [{ until: 5, name: 'a', type: 'delayed' }])).toBe(true);
  expect(sameEvents([event], [{ ...event, until: 6 }])).toBe(false);
  expect(sameEvents([event], [])).toBe(false);
  expect(sameEvents([{ ...event, extra: undefined } as LockEvent], [event])).toBe(false);
});
