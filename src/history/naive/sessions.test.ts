/** The naive model against src/core/README.md: sessions. Expectations written by hand from the text. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../api/entry.ts';
import {
  acquire,
  applyWhileBusy,
  breakGrant,
  brief,
  close,
  configure,
  expire,
  ModelGroup,
  modelGroup,
  namespaceConfig,
  openSession,
  release,
  SECRET_HASH,
} from '../model.fixture.ts';

describe('openSession', () => {
  it('numbers sessions from 1 and never again', () => {
    const group = modelGroup({ sessions: 1 });
    expect(group.now(openSession({ client: 'c', ttlMs: 5_000 }))).toEqual({
      events: [
        {
          type: 'sessionOpened',
          session: 2,
          client: 'c',
          identity: { account: 'payments/payout-worker', podUid: 'pod-1' },
          ttlMs: 5_000,
        },
      ],
      results: [{ type: 'opened', session: 2 }],
    });
    group.now(close(2));
    expect(group.result(openSession())).toEqual({ type: 'opened', session: 3 });
  });

  it.each([
    ['a TTL below', { ttlMs: 4_999 }],
    ['a TTL above', { ttlMs: 60_001 }],
    ['a broken TTL', { ttlMs: 15_000.5 }],
    ['a hold below 1 s', { maxHoldMs: 999 }],
    ['a hold over 30 d', { maxHoldMs: 30 * 86_400_000 + 1 }],
    ['a broken hold', { maxHoldMs: 1_000.5 }],
    ['a client too long', { client: 'c'.repeat(257) }],
    ['a short hash', { secretHash: 'ab' }],
    ['a hash that is not hex', { secretHash: 'xy'.repeat(32) }],
  ])('refuses %s', (_what, wrong) => {
    const group = modelGroup({ sessions: 0 });
    expect(group.code(openSession(wrong))).toBe('INVALID');
    expect(group.result(openSession())).toEqual({ type: 'opened', session: 1 });
  });

  it('checks namespace, consumer, number of sessions, then the rest', () => {
    const group = new ModelGroup();
    group.takeOver();
    const bad = openSession({ ttlMs: 0 });
    expect(group.code(bad)).toBe('NAMESPACE_NOT_FOUND');
    group.now(configure(1, namespaceConfig({ consumers: [], sessions: 0 })));
    expect(group.code(bad)).toBe('FORBIDDEN');
    group.now(configure(2, namespaceConfig({ sessions: 0 })));
    expect(group.code(bad)).toBe('QUOTA_EXCEEDED');
  });

  it('counts ending sessions', () => {
    const group = modelGroup({ sessions: 2, config: { sessions: 3 } });
    group.now(acquire(1, 'k1', 'a'));
    expect(applyWhileBusy(group, 1, close(1), openSession()).results.at(-1)).toMatchObject({
      code: 'QUOTA_EXCEEDED',
    });
    group.apply(1);
    expect(group.code(openSession())).toBe('opened');
  });
});

describe('attach, closeSession, expireSessions', () => {
  const attach = (session: number, number: number, secretHash = SECRET_HASH): Command => ({
    type: 'attach',
    session,
    attach: number,
    secretHash,
  });

  it('lists grants by token and waits in order of queueing, and outdates the older number', () => {
    const group = modelGroup();
    group.now(acquire(1, 'kb', 'b'), acquire(1, 'ka', 'a'), acquire(2, 'k', 'x'), acquire(2, 'l', 'y'));
    group.now(acquire(1, 'wy', 'y'), acquire(1, 'wx', 'x'), breakGrant('a', 2));
    expect(group.now(attach(1, 5))).toEqual({
      events: [],
      results: [
        {
          type: 'attached',
          ttlMs: 15_000,
          grants: [
            { name: 'b', token: 1, keys: ['kb'], mode: 'exclusive', revoking: null },
            { name: 'a', token: 2, keys: ['ka'], mode: 'exclusive', revoking: 'break' },
          ],
          waits: [
            { name: 'y', key: 'wy', position: 1 },
            { name: 'x', key: 'wx', position: 1 },
          ],
        },
      ],
    });
    expect(group.code(release(1, 'b', 1))).toBe('SUPERSEDED');
    expect(group.code(release(1, 'b', 1, { attach: 5 }))).toBe('done');
  });

  it('refuses numbers that are not higher, wrong secrets, unknown and ending sessions', () => {
    const group = modelGroup();
    expect(group.code(attach(1, 1))).toBe('SUPERSEDED');
    expect(group.code(attach(1, 2, 'cd'.repeat(32)))).toBe('SESSION_EXPIRED');
    expect(group.code(attach(9, 2))).toBe('SESSION_EXPIRED');
    group.now(close(2));
    expect(group.code(attach(2, 2))).toBe('SESSION_EXPIRED');
  });

  it('a clean close releases, waits before holds, holds by token', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'ka', 'b'), acquire(1, 'kb', 'a'), acquire(2, 'kx', 'x'), acquire(1, 'wx', 'x'));
    group.now(acquire(2, 'wb', 'b'));
    expect(brief(group.now(close(1)).events)).toEqual([
      'sessionEnding s1 closed',
      'refused x s1 SESSION_EXPIRED',
      'released b s1 t1 close',
      'granted b s2 t4',
      'released a s1 t2 close',
      'sessionEnded s1',
    ]);
  });

  it('a clean close is unclean for a grant under revoke', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), breakGrant('a', 1));
    expect(brief(group.now(close(1)).events).slice(1)).toEqual([
      'released a s1 t1 close',
      'delayed a',
      'sessionEnded s1',
    ]);
  });

  it('a closed stream and an expiry are unclean', () => {
    const group = modelGroup({ config: { lockDelayMs: 5_000 } });
    group.now(acquire(1, 'k1', 'a'), acquire(2, 'k2', 'b'));
    expect(brief(group.now(close(1, false)).events)).toEqual([
      'sessionEnding s1 stream',
      'expired a s1 t1 stream',
      'delayed a',
      'sessionEnded s1',
    ]);
    const threw: Command = { type: 'expireSessions', sessions: [1, 2, 2, 9], cause: 'threw' };
    expect(brief(group.now(threw).events)).toEqual([
      'sessionEnding s2 threw',
      'expired b s2 t2 threw',
      'delayed b',
      'sessionEnded s2',
    ]);
    expect(group.code(close(1))).toBe('SESSION_EXPIRED');
    expect(group.code(close(9, true, 4))).toBe('SESSION_EXPIRED');
  });

  it('ends sessions in the order in which they were marked', () => {
    const group = modelGroup({ sessions: 3 });
    group.now(acquire(1, 'k1', 'a'), acquire(3, 'k3', 'c'));
    expect(brief(group.now(expire(3, 1)).events)).toEqual([
      'sessionEnding s3 expired',
      'sessionEnding s1 expired',
      'expired c s3 t2 expired',
      'sessionEnded s3',
      'expired a s1 t1 expired',
      'sessionEnded s1',
    ]);
  });
});
