/** The heap of timers against a plain sorted list. */

import { describe, expect, it } from 'vitest';
import { fc } from '../../test/support/seeded.ts';
import { type Due, TimerQueue } from './timer-queue.ts';

function timer(): Due {
  return { due: 0, sequence: 0, heapIndex: -1 };
}

function byDue(a: Due, b: Due): number {
  return a.due - b.due || a.sequence - b.sequence;
}

describe('TimerQueue', () => {
  it('rule C1: gives timers by (due, sequence), whatever is set and cancelled in between', () => {
    const step = fc.oneof(
      fc.record({ what: fc.constant('set' as const), due: fc.nat(20) }),
      fc.record({ what: fc.constant('cancel' as const), which: fc.nat() }),
      fc.record({ what: fc.constant('take' as const) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new TimerQueue<Due>();
        let expected: Due[] = [];
        for (const next of steps) {
          if (next.what === 'set') {
            const node = timer();
            queue.set(node, next.due);
            expected.push(node);
            expected.sort(byDue);
          } else {
            const node = next.what === 'take' ? queue.first() : expected[next.which % (expected.length || 1)];
            if (next.what === 'take') expect(node).toBe(expected[0]);
            if (node !== undefined) queue.cancel(node);
            expected = expected.filter((other) => other !== node);
          }
          expect(queue.first()).toBe(expected[0]);
          expect(queue.size).toBe(expected.length);
        }
        expect([...queue.nodes()].sort(byDue)).toEqual(expected);
      }),
    );
  });

  it('rule C1: a timer set again later is behind those of the same due time', () => {
    const queue = new TimerQueue<Due>();
    const [first, second] = [timer(), timer()];
    queue.set(first, 5);
    queue.set(second, 5);
    queue.cancel(first);
    queue.set(first, 5);
    expect(queue.first()).toBe(second);
    expect(first.sequence).toBe(3);
  });

  it('cancelling what is not set does nothing', () => {
    const queue = new TimerQueue<Due>();
    const [set, never] = [timer(), timer()];
    queue.set(set, 1);
    queue.cancel(never);
    queue.cancel(set);
    queue.cancel(set);
    expect(queue.size).toBe(0);
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('refuses to be due at %d', (due) => {
    expect(() => new TimerQueue<Due>().set(timer(), due)).toThrow('assertion failed');
  });

  it('refuses a timer twice, and one restored that is newer than the snapshot', () => {
    const queue = new TimerQueue<Due>();
    const node = timer();
    queue.set(node, 1);
    expect(() => queue.set(node, 2)).toThrow('assertion failed');
    expect(() => queue.restore(node)).toThrow('assertion failed');
    expect(() => queue.restore({ due: 1, sequence: 2, heapIndex: -1 })).toThrow('assertion failed');
  });
});
