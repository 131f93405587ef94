/** What went wrong in other lock services, as far as the state machine alone shows it: groups H and I (names and leaks). */

import { describe, expect, it } from 'vitest';
import { TestGroup, traceOf } from '../../test/support/core.ts';
import { fc } from '../../test/support/seeded.ts';
import { NAME_BYTES_MAX } from '../api/limits.ts';
import { utf8Length } from '../api/text.ts';
import { read } from './index.ts';

describe('names', () => {
  const odd = [
    ' ',
    ' x',
    'x ',
    ' x ',
    '\t',
    'x\n',
    '\0',
    '..',
    '.',
    '/',
    '//',
    'a:b',
    '🔒',
    'É',
    'é',
    'e\u0301',
    'X',
    'x',
  ];

  it('case H04: blanks at the ends are kept exactly, on every call', () => {
    const group = new TestGroup();
    const session = group.open();
    const tokens = odd.map((name) => group.lock(session, name));
    expect(new Set(tokens).size).toBe(odd.length);
    for (const [i, name] of odd.entries()) {
      expect(group.release(session, name.trim(), tokens[i] ?? 0).type).toBe(
        name.trim() === name ? 'done' : 'refused',
      );
    }
  });

  it('case H05: NUL, newline, dots, colon and emoji are names like others', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    for (const name of odd) {
      const token = group.lock(a, name);
      expect(group.acquire(b, name)).toMatchObject({ code: 'HELD' });
      expect(read(group.state, { type: 'getLock', name })).toMatchObject({
        lock: { name, holders: [{ session: a, token }] },
      });
      expect(group.release(a, name, token)).toMatchObject({ type: 'done' });
      group.run([group.cancelCommand(b, 'none', { acks: [...group.session(b).keys.keys()] })]);
    }
    expect(group.state.locks.size).toBe(0);
  });

  it('case H07: the limit of a name counts bytes: at the limit it works, one more is INVALID', () => {
    const group = new TestGroup();
    const session = group.open();
    for (const character of ['a', 'é', '€', '🔒']) {
      const bytes = utf8Length(character);
      const name = character.repeat(Math.floor(NAME_BYTES_MAX / bytes)) + 'a'.repeat(NAME_BYTES_MAX % bytes);
      expect(utf8Length(name)).toBe(NAME_BYTES_MAX);
      const token = group.lock(session, name);
      expect(group.acquire(session, `${name}a`)).toMatchObject({ code: 'INVALID', field: 'name' });
      expect(group.release(session, name, token)).toMatchObject({ type: 'done' });
    }
  });

  it('case H10: a name and its prefixes are independent', () => {
    const group = new TestGroup();
    const sessions = [group.open(), group.open(), group.open()] as const;
    const names = ['a/b', 'a', 'a/b/c'];
    const tokens = names.map((name, i) => group.lock(sessions[i] ?? 0, name));
    group.wait(sessions[0], 'a', { key: 'w' });
    group.release(sessions[0], 'a/b', tokens[0] ?? 0);
    expect(group.lockState('a')?.queue?.size).toBe(1);
    expect(group.holder('a/b/c')).toEqual({ session: 3, token: 3 });
  });

  it('case H14: whatever the name, release, read, list and cancel mean the same lock', () => {
    const anyName = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 40 })
      .filter((name) => utf8Length(name) <= NAME_BYTES_MAX);
    fc.assert(
      fc.property(fc.uniqueArray(anyName, { minLength: 2, maxLength: 6 }), (names) => {
        const group = new TestGroup();
        const session = group.open();
        const tokens = names.map((name) => group.lock(session, name));
        const all = read(group.state, { type: 'listLocks', prefix: '', after: '', limit: 100 });
        expect(all).toMatchObject({ type: 'locks', more: false });
        expect(all.type === 'locks' && all.locks.map(({ name }) => name)).toEqual([...names].sort());
        for (const [i, name] of names.entries()) {
          expect(group.release(session, name, tokens[i] ?? 0)).toMatchObject({ type: 'done' });
          expect(read(group.state, { type: 'getLock', name })).toMatchObject({ lock: { holders: [] } });
        }
        expect(group.state.locks.size).toBe(0);
      }),
    );
  });
});

describe('leaks', () => {
  it('case I02: asking about names leaves nothing of them', () => {
    const group = new TestGroup();
    const session = group.open();
    const before = traceOf(group.state);
    for (let i = 0; i < 1_000; i++) {
      const name = `name-${i}`;
      group.run([
        group.releaseCommand(session, name, i),
        group.cancelCommand(session, name),
        { type: 'break', name, token: 1, now: true, reason: '', by: '' },
        { type: 'unquarantine', name, by: '' },
      ]);
      read(group.state, { type: 'getLock', name });
    }
    expect(traceOf(group.state)).toEqual(before);
  });

  it('case I04: after all waits have ended nothing of the queues is left', () => {
    const group = new TestGroup();
    const [holder, a, b, c] = [group.open(), group.open(), group.open(), group.open()];
    const token = group.lock(holder, 'x');
    for (let i = 0; i < 50; i++) {
      group.wait(a, 'x', { key: `timeout-${i}`, waitMs: 1_000 + i });
      group.wait(b, 'x', { key: `cancel-${i}` });
      group.wait(c, 'x', { key: `session-${i}` });
    }
    group.pass(2_000);
    for (let i = 0; i < 50; i++) group.cancel(b, `cancel-${i}`);
    group.close(c);
    expect(group.state).toMatchObject({ waits: 0, timers: { size: 1 } });
    expect(group.lockState('x')?.queue).toBeNull();
    expect(group.session(a).waits.size + group.session(b).waits.size).toBe(0);
    group.release(holder, 'x', token);
    expect(group.state.timers.size).toBe(0);
  });
});
