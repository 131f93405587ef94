/** Who has been silent too long: rules S5 and S6, without a leader around them. */
import { describe, expect, test } from 'vitest';
import { Leases } from './leases.ts';

const TTL_MS = 15_000;
const GRACE_MS = TTL_MS / 3;

describe('rule S6: a session expires one TTL after its last sign of life', () => {
  test('not a millisecond sooner; and a renewal counts from its arrival', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    leases.add(2, TTL_MS, 0);
    leases.renew(2, 10_000);
    expect(leases.expired(TTL_MS - 1)).toEqual([]);
    expect(leases.expired(TTL_MS)).toEqual([1]);
    expect(leases.expired(10_000 + TTL_MS - 1)).toEqual([1]);
    expect(leases.expired(10_000 + TTL_MS)).toEqual([1, 2]);
  });

  test('each by its own TTL, and only once it is known', () => {
    const leases = new Leases();
    leases.renew(3, 0);
    expect(leases.size).toBe(0);
    leases.add(1, 5_000, 0);
    leases.add(2, 60_000, 0);
    expect(leases.expired(59_999)).toEqual([1]);
    leases.remove(1);
    expect(leases.expired(60_000)).toEqual([2]);
  });

  test('a session that attaches again has a full TTL from then on', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    leases.add(1, TTL_MS, 14_000);
    expect(leases.size).toBe(1);
    expect(leases.expired(14_000 + TTL_MS - 1)).toEqual([]);
    expect(leases.expired(14_000 + TTL_MS)).toEqual([1]);
  });
});

describe('rule S6: after a standstill nobody expires for TTL/3, once per TTL', () => {
  test('500 ms are no standstill yet', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    leases.stalled(500, TTL_MS);
    expect(leases.takeStall()).toBe(0);
    expect(leases.expired(TTL_MS)).toEqual([1]);
  });

  test('longer ones spare everybody for a third of their own TTL', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    leases.add(2, 6_000, 0);
    leases.stalled(501, TTL_MS);
    expect([leases.takeStall(), leases.takeStall()]).toEqual([501, 0]);
    expect(leases.expired(TTL_MS + 1_999)).toEqual([]);
    expect(leases.expired(TTL_MS + 2_000)).toEqual([2]);
    expect(leases.expired(TTL_MS + GRACE_MS - 1)).toEqual([2]);
    expect(leases.expired(TTL_MS + GRACE_MS)).toEqual([1, 2]);
  });

  test('a leader that keeps stalling does not keep the locks of the dead for ever', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    let now = TTL_MS;
    leases.stalled(501, now);
    for (; leases.expired(now).length === 0; now += 1_000) leases.stalled(501, now);
    expect(now).toBe(TTL_MS + GRACE_MS);
    expect(leases.takeStall()).toBe(501);
  });

  test('the next grace comes one TTL after the last one', () => {
    const leases = new Leases();
    leases.add(1, TTL_MS, 0);
    leases.stalled(501, 1_000);
    leases.add(2, TTL_MS, 1_000);
    leases.stalled(501, 1_000 + TTL_MS - 1);
    expect(leases.expired(1_000 + TTL_MS)).toEqual([1, 2]);
    leases.stalled(501, 1_000 + TTL_MS);
    expect(leases.expired(1_000 + TTL_MS)).toEqual([]);
    expect(leases.expired(1_000 + TTL_MS + GRACE_MS)).toEqual([1, 2]);
  });
});
