/** Outcomes of acquires are acknowledged, once and surely: rule C5. */
import { describe, expect, test } from 'vitest';
import { Pod } from '../../test/support/virtual/pod.ts';
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import type { LeaseholdError } from '../api/errors.ts';
import type { AnswerBody, ClientRequestBody } from '../api/wire.ts';
import { Acquires } from './acquires.ts';
import type { GroupSession } from './group-session.ts';

/** A pod whose lock `a` is held by one session, and another session that is kept alive. */
async function contended() {
  const pod = await Pod.start();
  const holder = await pod.holding('a');
  const sessionId = await pod.open();
  pod.keepAlive(sessionId);
  await pod.runtime.pass(10);
  return { pod, holder, sessionId };
}

describe('rule C5: outcomes are acknowledged', () => {
  test('thousands of acquires, granted and refused, leave at most a handful of outcomes unsettled', async () => {
    const { pod, sessionId } = await contended();
    for (let i = 0; i < 400; i++) {
      const { token } = await pod.acquire('b', { sessionId });
      await pod.release('b', sessionId, token);
      expect((await pod.refusal(pod.acquire('a', { sessionId }))).code).toBe('HELD');
    }
    expect(pod.counts.acquired.filter((outcome) => outcome === 'QUOTA_EXCEEDED')).toEqual([]);
  });

  test('a client at its rate limit loses no acknowledgements with the acquires that are refused', async () => {
    const pod = await Pod.start({ config: { operationsPerSecondPerClient: 10 } });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    let granted = 0;
    for (let second = 0; second < 60; second++) {
      const calls = Array.from({ length: 15 }, (_, i) => pod.acquiring(`n${i}`, { sessionId }));
      await pod.runtime.pass(5);
      for (const [i, { outcome, granted: done }] of calls.entries()) {
        if (outcome.value !== 'granted') continue;
        granted++;
        await pod.release(`n${i}`, sessionId, (await done).token);
      }
      await pod.runtime.pass(995);
    }
    expect(granted).toBeGreaterThan(500);
    expect([...new Set(pod.counts.acquired)].sort()).toEqual(['RATE_LIMITED', 'granted']);
  });

  test('nor with one that is refused right after each grant', async () => {
    const pod = await Pod.start({ config: { operationsPerSecondPerClient: 1 } });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    for (let i = 0; i < 300; i++) {
      const { token } = await pod.acquire('a', { sessionId });
      expect((await pod.refusal(pod.acquire('b', { sessionId }))).code).toBe('RATE_LIMITED');
      await pod.release('a', sessionId, token);
      await pod.runtime.pass(1_100);
    }
    expect(pod.counts.acquired.filter((outcome) => outcome === 'granted')).toHaveLength(300);
  });

  test('nor one whose calls give up during outages', async () => {
    const { pod, sessionId } = await contended();
    for (let round = 0; round < 8; round++) {
      for (let i = 0; i < 50; i++) {
        const { token } = await pod.acquire(`n${i}`, { sessionId });
        await pod.release(`n${i}`, sessionId, token);
      }
      pod.jobs.line.break();
      pod.jobs.line.isDown = true;
      const calls = Array.from({ length: 50 }, (_, i) => pod.acquiring(`n${i}`, { sessionId }));
      await pod.runtime.pass(2_500);
      expect(calls.map(({ outcome }) => outcome.value)).toEqual(calls.map(() => 'UNAVAILABLE'));
      pod.jobs.line.isDown = false;
      await pod.runtime.pass(2_000);
    }
    expect(pod.counts.acquired.filter((outcome) => outcome === 'QUOTA_EXCEEDED')).toEqual([]);
    expect(pod.jobs.replica.status().held).toBe(1);
  });
});

/** Acquires before a session that only writes down what it is asked to send, in this order. */
function beforeSilentSession() {
  const runtime = new VirtualRuntime();
  const pending = new Map<
    object,
    { readonly body: ClientRequestBody; readonly onAnswer: (answer: AnswerBody) => void }
  >();
  const session = {
    request: (
      build: (session: number, attach: number) => ClientRequestBody,
      onAnswer: (answer: AnswerBody) => void,
    ): (() => boolean) => {
      const entry = { body: build(1, 1), onAnswer };
      pending.set(entry, entry);
      return () => pending.delete(entry);
    },
  };
  const acquires: Acquires = new Acquires(runtime, () => session as unknown as GroupSession, {
    queued: () => undefined,
    granted: () => true,
    isHeld: () => true,
    unwanted: () => undefined,
    forgotten: () => undefined,
  });
  const bodies = () => [...pending.values()].map(({ body }) => body);
  const acquire = (waitMs = 60_000) => {
    const hangUp = new AbortController();
    const call = {
      body: { name: 'a', mode: 'exclusive', permits: 1, owner: '', reentrant: false },
      waitMs,
      purpose: '',
      request: undefined,
      hangUp: hangUp.signal,
    } as const;
    const outcome = acquires.acquire(call).catch((error: LeaseholdError) => error.code);
    const [last] = bodies().slice(-1) as unknown as readonly { readonly key: string }[];
    return { outcome, key: last?.key ?? '' };
  };
  return { runtime, acquires, acquire, bodies };
}

describe('an outcome told by an event before the answer', () => {
  test('a refusal: its acquire is not sent again, and what it carried is acknowledged by another', async () => {
    const { runtime, acquires, acquire, bodies } = beforeSilentSession();
    const first = acquire();
    acquires.refused(first.key, 'QUARANTINED');
    expect(await runtime.until(first.outcome, 10)).toBe('QUARANTINED');
    expect(bodies()).toEqual([]);
    const second = acquire();
    expect(bodies()).toMatchObject([{ type: 'acquire', key: second.key, acks: [first.key] }]);
    acquires.refused(second.key, 'WAIT_TIMEOUT');
    const third = acquire();
    const [sent] = bodies() as unknown as readonly { readonly acks: readonly string[] }[];
    expect([...(sent?.acks ?? [])].sort()).toEqual([first.key, second.key].sort());
    expect(third.key).not.toBe(second.key);
  });

  test('a grant: the same', async () => {
    const { runtime, acquires, acquire, bodies } = beforeSilentSession();
    const first = acquire();
    acquires.granted(first.key, 7);
    expect(await runtime.until(first.outcome, 10)).toBe(7);
    expect(bodies()).toEqual([]);
    acquire();
    expect(bodies()).toMatchObject([{ acks: [first.key] }]);
  });
});
