/** Until when a grant may be believed in, where the machine sleeps (rule A2). */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import { Lease } from './lease.ts';

test.each([
  { ttlMs: 5_000, unnoticedMs: 600, noticedMs: 700 },
  { ttlMs: 15_000, unnoticedMs: 1_900, noticedMs: 2_100 },
])(
  'a sleep is noticed before it outlasts the margin of a TTL of $ttlMs ms',
  ({ ttlMs, unnoticedMs, noticedMs }) => {
    const runtime = new VirtualRuntime();
    const lease = new Lease(runtime, ttlMs, () => undefined);
    lease.confirm();
    runtime.stepWall(unnoticedMs);
    expect(lease.isSuspected).toBe(false);
    runtime.stepWall(noticedMs - unnoticedMs);
    expect(lease.isSuspected).toBe(true);
    lease.confirm();
    expect(lease.isSuspected).toBe(false);
  },
);
