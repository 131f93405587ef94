/** open and attach: who gets a session, who may speak for it (rules C10, S3), and what keepalive answers say of it. */
import { describe, expect, it, vi } from 'vitest';
import { eventsOf, openCommand, SECRET_HASH, TestGroup, traceOf } from '../../test/support/core.ts';
import type { OpenSession } from '../api/entry.ts';
import { CLIENT_BYTES_MAX, HOLD_MS_MAX, HOLD_MS_MIN } from '../api/limits.ts';
import { digestOf } from '../api/wire.ts';
import { liveSessions, sessionStatus } from './index.ts';

describe('opening a session', () => {
  it('rule C10: gives the next number, attached under 1', () => {
    const group = new TestGroup();
    const { results, events } = group.run([openCommand({ ttlMs: 7_000 }), openCommand()]);
    expect(results).toEqual([
      { type: 'opened', session: 1 },
      { type: 'opened', session: 2 },
    ]);
    const { client, identity } = openCommand();
    expect(events[0]).toEqual({ type: 'sessionOpened', session: 1, client, identity, ttlMs: 7_000 });
    expect(sessionStatus(group.state, 1, 1)).toMatchObject({ ttlMs: 7_000, grants: 0, digest: 0 });
    expect([...liveSessions(group.state)]).toEqual([
      { id: 1, ttlMs: 7_000 },
      { id: 2, ttlMs: 15_000 },
    ]);
  });

  const malformed: [what: string, field: string, differs: Partial<OpenSession>][] = [
    ['a TTL below the bounds', 'ttl_s', { ttlMs: 4_999 }],
    ['a TTL above the bounds', 'ttl_s', { ttlMs: 60_001 }],
    ['a broken TTL', 'ttl_s', { ttlMs: 15_000.5 }],
    ['a max hold below the bounds', 'max_hold_ms', { maxHoldMs: HOLD_MS_MIN - 1 }],
    ['a max hold above the bounds', 'max_hold_ms', { maxHoldMs: HOLD_MS_MAX + 1 }],
    ['a negative max hold', 'max_hold_ms', { maxHoldMs: -1 }],
    ['a client over the limit', 'client', { client: 'c'.repeat(CLIENT_BYTES_MAX + 1) }],
    ['a client with half a character', 'client', { client: '\ud800' }],
    ['a hash that is too short', 'secretHash', { secretHash: SECRET_HASH.slice(1) }],
    ['a hash in capitals', 'secretHash', { secretHash: SECRET_HASH.toUpperCase() }],
    ['no hash', 'secretHash', { secretHash: '' }],
  ];

  it.each(malformed)('rule C4: %s is INVALID and leaves no trace', (_what, field, differs) => {
    const group = new TestGroup();
    const before = traceOf(group.state);
    expect(group.one(openCommand(differs))).toMatchObject({ type: 'refused', code: 'INVALID', field });
    expect(traceOf(group.state)).toEqual(before);
  });

  it('rule C11: is refused by configuration and limits, without using up a number', () => {
    const unconfigured = new TestGroup({ config: null });
    expect(unconfigured.one(openCommand())).toMatchObject({ code: 'NAMESPACE_NOT_FOUND' });
    const group = new TestGroup({ config: { sessions: 1 } });
    group.configure({ sessions: 1, consumers: [{ namespace: 'other', serviceAccounts: null }] });
    expect(group.one(openCommand())).toMatchObject({ code: 'FORBIDDEN' });
    group.configure({ sessions: 1 });
    expect(group.open()).toBe(1);
    expect(group.one(openCommand())).toMatchObject({ code: 'QUOTA_EXCEEDED', limit: 1 });
    group.close(1);
    expect(group.open()).toBe(2);
  });

  it('rule C10: a session that is still ending counts towards the limit', () => {
    const group = new TestGroup({ config: { sessions: 2 } });
    const big = group.openWithLocks(2_001);
    const { results } = group.run([
      { type: 'closeSession', session: big, attach: 1, clean: true },
      openCommand(),
      openCommand(),
    ]);
    expect(results.map(({ type }) => type)).toEqual(['done', 'opened', 'refused']);
    group.pass(0);
    expect(group.one(openCommand())).toMatchObject({ type: 'opened' });
  });
});

describe('attaching', () => {
  it('rule S3: lists all grants and waits of the session', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const y = group.lock(a, 'y', { key: 'k-y' });
    const x = group.lock(a, 'x', { key: 'k-x' });
    const z = group.lock(b, 'z');
    group.lock(b, 'v');
    group.wait(b, 'y', { key: 'other' });
    group.wait(a, 'z', { key: 'w-z' });
    group.wait(b, 'z', { key: 'behind' });
    group.wait(a, 'v', { key: 'w-v' });
    const over = group.lock(a, 'over');
    group.release(a, 'over', over);
    group.breakLock('x', x);
    expect(group.attach(a, 2)).toEqual({
      type: 'attached',
      ttlMs: 15_000,
      grants: [
        { name: 'y', token: y, keys: ['k-y'], mode: 'exclusive', revoking: null },
        { name: 'x', token: x, keys: ['k-x'], mode: 'exclusive', revoking: 'break' },
      ],
      waits: [
        { name: 'z', key: 'w-z', position: 1 },
        { name: 'v', key: 'w-v', position: 1 },
      ],
    });
    group.release(b, 'z', z);
    expect(group.attach(a, 3)).toMatchObject({ grants: [{}, {}, { name: 'z', keys: ['w-z'] }] });
  });

  it('goes through a queue once, however often the session waits there', () => {
    const group = new TestGroup({ checked: false });
    const [a, b] = [group.open(), group.open()];
    group.lock(b, 'x');
    for (const key of ['first', 'third', 'fourth']) {
      group.wait(a, 'x', { key });
      if (key === 'first') group.wait(b, 'x');
    }
    const queue = group.state.locks.get('x')?.queue as Set<unknown>;
    const walk = vi.spyOn(queue, Symbol.iterator);
    const positions = [
      { name: 'x', key: 'first', position: 1 },
      { name: 'x', key: 'third', position: 3 },
      { name: 'x', key: 'fourth', position: 4 },
    ];
    expect(group.attach(a, 2)).toMatchObject({ waits: positions });
    expect(walk).toHaveBeenCalledTimes(1);
  });

  it('rule S3: needs a higher number each time; a lower one changes nothing', () => {
    const group = new TestGroup();
    const session = group.open();
    expect(group.attach(session, 1)).toMatchObject({ code: 'SUPERSEDED' });
    expect(group.attach(session, 5)).toMatchObject({ type: 'attached' });
    for (const number of [0, 1, 4, 5]) {
      expect(group.attach(session, number)).toMatchObject({ code: 'SUPERSEDED' });
    }
    expect(group.session(session).attach).toBe(5);
    expect(sessionStatus(group.state, session, 5)).not.toBeNull();
    expect(sessionStatus(group.state, session, 4)).toBeNull();
  });

  it('rule S3: commands under another number, lower or higher, are refused', () => {
    const group = new TestGroup();
    const session = group.open();
    const token = group.lock(session, 'x', { key: 'k' });
    group.attach(session, 5);
    const before = traceOf(group.state);
    for (const attach of [1, 4, 6]) {
      const { results, events } = group.run([
        group.acquireCommand(session, 'y', { attach }),
        group.acquireCommand(session, 'x', { attach, key: 'k' }),
        group.releaseCommand(session, 'x', token, { attach }),
        group.cancelCommand(session, 'k', { attach }),
        { type: 'closeSession', session, attach, clean: true },
      ]);
      for (const result of results) expect(result).toMatchObject({ type: 'refused', code: 'SUPERSEDED' });
      expect(events).toEqual([]);
    }
    expect(traceOf(group.state)).toEqual(before);
    expect(group.release(session, 'x', token)).toMatchObject({ type: 'done' });
  });

  it('rule S3: needs the secret, and does not tell a guesser that the session exists', () => {
    const group = new TestGroup();
    const session = group.open();
    const wrong = group.attach(session, 2, { secretHash: 'b6'.repeat(32) });
    expect(wrong).toEqual(group.attach(12_345, 2));
    expect(wrong).toMatchObject({ code: 'SESSION_EXPIRED' });
    expect(group.session(session).attach).toBe(1);
  });

  it('rule S3: is no event', () => {
    const group = new TestGroup();
    const session = group.open();
    const { events } = group.run([{ type: 'attach', session, attach: 2, secretHash: SECRET_HASH }]);
    expect(events).toEqual([]);
  });
});

describe('the digest of grants in keepalive answers', () => {
  it('rule S3: is that of the tokens held, in whatever order they came and went', () => {
    const group = new TestGroup({ takeOver: { unixSeconds: 1_800_000_000 } });
    const session = group.open();
    const other = group.open();
    const tokens = ['a', 'b', 'c', 'd'].map((name) => group.lock(session, name));
    group.wait(other, 'b');
    group.release(session, 'b', tokens[1] ?? 0);
    group.breakLock('d', tokens[3] ?? 0, true);
    const [first = 0, , third = 0] = tokens;
    expect(sessionStatus(group.state, session, 1)).toEqual({
      ttlMs: 15_000,
      grants: 2,
      digest: (digestOf(third) ^ digestOf(first)) >>> 0,
      revoking: [],
    });
    group.release(session, 'a', first);
    group.release(session, 'c', third);
    expect(sessionStatus(group.state, session, 1)).toMatchObject({ grants: 0, digest: 0 });
  });

  it('rule C9: names the tokens that a keepalive does not extend', () => {
    const group = new TestGroup();
    const [a, b] = [group.open(), group.open()];
    const [x, y] = [group.lock(a, 'x'), group.lock(a, 'y')];
    group.lock(b, 'z');
    group.breakLock('y', y);
    group.breakLock('x', x);
    const cause = 'break';
    expect(sessionStatus(group.state, a, 1)?.revoking).toEqual([
      { token: x, cause },
      { token: y, cause },
    ]);
    expect(sessionStatus(group.state, b, 1)?.revoking).toEqual([]);
    group.release(a, 'x', x);
    expect(sessionStatus(group.state, a, 1)?.revoking).toEqual([{ token: y, cause }]);
  });

  it('rule C10: is not given for a session that is ending', () => {
    const group = new TestGroup();
    const session = group.openWithLocks(2_001);
    expect(eventsOf(group.expire(session).events, 'sessionEnded')).toEqual([]);
    expect(sessionStatus(group.state, session, 1)).toBeNull();
    expect([...liveSessions(group.state)]).toEqual([]);
  });
});
