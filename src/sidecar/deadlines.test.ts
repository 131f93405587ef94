/** What a sidecar says about a grant, and until when: rules A1, A2, C9, S2. */
import { describe, expect, test } from 'vitest';
import { LEASE_MS, MARGIN_MS, Pod, TTL_MS } from '../../test/support/virtual/pod.ts';
import type { LockEvent } from '../api/entry.ts';

const KEEPALIVE_MS = TTL_MS / 5;
/** Rule S1: a keepalive waits for the next beat. */
const BEAT_MS = 250;

describe('rule A1: a deadline counts from when the acknowledged keepalive was sent', () => {
  test('the first one counts from when the session was asked for, however late the answer is', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    pod.jobs.line.toClient = 'held';
    const askedAt = pod.runtime.nowMs;
    const acquiring = pod.acquiring('a', { sessionId });
    await pod.runtime.pass(1_500);
    pod.jobs.line.toClient = 'flows';
    const granted = await pod.runtime.until(acquiring.granted, 100);
    expect(pod.runtime.nowMs + granted.deadlineInMs).toBeLessThanOrEqual(askedAt + LEASE_MS);
    expect(Number(granted.deadlineMonotonicNs) / 1e6).toBeCloseTo(askedAt + LEASE_MS, 0);
  });

  test('a keepalive moves it by its own send time, not by its answer’s', async () => {
    const pod = await Pod.start();
    const { token } = await pod.holding('a');
    await pod.runtime.pass(10_000);
    pod.jobs.line.toClient = 'held';
    const before = pod.jobs.line.keepalives.length;
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    const keepalive = pod.jobs.line.keepalives[before];
    expect(keepalive).toBeDefined();
    await pod.runtime.pass(1_000);
    pod.jobs.line.toClient = 'flows';
    const { held, deadlineInMs = 0 } = pod.held('a', token);
    expect(held).toBe(true);
    expect(pod.runtime.nowMs + deadlineInMs).toBeLessThanOrEqual((keepalive?.atMs ?? 0) + LEASE_MS);
    expect(pod.runtime.nowMs + deadlineInMs).toBeGreaterThan((keepalive?.atMs ?? 0) + LEASE_MS - 2);
  });

  test('after it "held" is false by time alone; the session is lost and given back uncleanly', async () => {
    const pod = await Pod.start({ config: { lockDelayMs: 5_000 } });
    const { token, sessionId } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(10_000);
    pod.jobs.line.both = 'lost';
    const { deadlineInMs = 0 } = pod.held('a', token);
    // Nothing runs meanwhile: no timer of the sidecar's has fired when it is asked.
    pod.runtime.stall(deadlineInMs - 1);
    expect(pod.held('a', token).held).toBe(true);
    pod.runtime.stall(2);
    expect(pod.held('a', token)).toEqual({ held: false });
    await pod.runtime.pass(10);
    expect(lines.map(({ event }) => event)).toContain('lost');
    pod.jobs.line.both = 'flows';
    await pod.runtime.pass(TTL_MS);
    expect(await pod.jobs.lock('a')).toMatchObject({ holders: [] });
    const events: LockEvent[] = [];
    for await (const entry of pod.jobs.replica.history(1)) events.push(...entry.events);
    expect(events).toContainEqual(expect.objectContaining({ type: 'delayed', name: 'a' }));
  });

  test('a passed deadline is final: an answer that comes after it gives nothing back', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a');
    await pod.runtime.pass(10_000);
    pod.jobs.line.toClient = 'held';
    await pod.runtime.pass(LEASE_MS + 10);
    expect(pod.held('a', token).held).toBe(false);
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(3_000);
    expect(pod.held('a', token).held).toBe(false);
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe(
      'SESSION_EXPIRED',
    );
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a deadline that passed while the process stood still is final, though no timer has fired yet', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a');
    await pod.runtime.pass(10_000);
    pod.jobs.line.toClient = 'held';
    const { deadlineInMs = 0 } = pod.held('a', token);
    // The next keepalive is acknowledged, and its answer, which would move the deadline, is on its way when everything stops.
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    pod.runtime.stall(deadlineInMs - KEEPALIVE_MS - BEAT_MS + 1);
    expect(pod.held('a', token)).toEqual({ held: false });
    pod.jobs.line.toClient = 'flows';
    expect(pod.held('a', token)).toEqual({ held: false });
    await pod.runtime.pass(3_000);
    expect(pod.held('a', token)).toEqual({ held: false });
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe(
      'SESSION_EXPIRED',
    );
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('a grant that arrives after its deadline is cancelled, not reported, and its call ends', async () => {
    const pod = await Pod.start();
    const { token, sessionId: holder } = await pod.holding('a');
    const sessionId = await pod.open({ keepalive: 'stream' });
    const { lines } = pod.stream(sessionId);
    const acquiring = pod.acquiring('a', { sessionId, waitMs: 60_000 });
    await pod.runtime.pass(1);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    // The grant lies in the line for longer than the lease.
    pod.jobs.line.toClient = 'held';
    await pod.runtime.until(
      pod.jobs.replica.submit({
        type: 'break',
        name: 'a',
        token,
        now: true,
        reason: 'test',
        by: 'me',
      }),
      100,
    );
    await pod.runtime.pass(5_000);
    expect(holder).toBeDefined();
    pod.runtime.stall(LEASE_MS);
    pod.jobs.line.toClient = 'flows';
    const error = await pod.refusal(acquiring.granted, 8_000);
    expect(['UNAVAILABLE', 'SESSION_EXPIRED']).toContain(error.code);
    expect(lines.filter(({ event }) => event === 'granted')).toEqual([]);
    await pod.runtime.pass(3_000);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });
});

describe('rule S11: a waiter keeps its place through an outage', () => {
  test('longer than its lease; when it is over it is granted in its turn', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const other = await pod.open({ keepalive: 'stream' });
    pod.stream(other);
    const acquiring = pod.acquiring('a', { sessionId: other, waitMs: 600_000 });
    await pod.runtime.pass(1);
    pod.jobs.log.isOut = true;
    await pod.runtime.pass(4 * TTL_MS);
    expect(acquiring.outcome.value).toBeNull();
    expect(pod.held('a', holder.token).held).toBe(false);
    pod.jobs.log.isOut = false;
    const granted = await pod.runtime.until(acquiring.granted, 5_000);
    expect(granted.token).toBeGreaterThan(holder.token);
    expect(granted.deadlineInMs).toBeGreaterThan(0);
    await pod.runtime.pass(TTL_MS);
    expect(await pod.jobs.tokenOf('a')).toBe(granted.token);
  });

  test('an outage costs the group one attach per session now and then, not one at every keepalive', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream' });
    pod.stream(sessionId);
    await pod.acquire('a', { sessionId });
    const other = await pod.open({ keepalive: 'stream' });
    pod.stream(other);
    const acquiring = pod.acquiring('a', { sessionId: other, waitMs: 3_600_000 });
    await pod.runtime.pass(10);
    pod.jobs.log.isOut = true;
    await pod.runtime.pass(2 * TTL_MS);
    const [before, connects] = [pod.jobs.line.requests('attachWithSecret').length, pod.jobs.line.connects];
    await pod.runtime.pass(10 * TTL_MS);
    const attempts = (10 * TTL_MS) / ((2 * TTL_MS) / 5);
    expect(pod.jobs.line.connects - connects).toBeLessThanOrEqual(attempts + 1);
    // Two sessions; the one that lost its grants tries to close.
    expect(pod.jobs.line.requests('attachWithSecret').length - before).toBeLessThanOrEqual(
      2 * (attempts + 1),
    );
    expect(acquiring.outcome.value).toBeNull();
  });
});

describe('rule S2: frames out of their order', () => {
  test('an answer with another number than any keepalive on its way moves nothing', async () => {
    const pod = await Pod.start();
    const { token } = await pod.holding('a');
    await pod.runtime.pass(10_000);
    const { deadlineInMs = 0 } = pod.held('a', token);
    pod.jobs.line.toClient = 'lost';
    await pod.runtime.pass(2 * KEEPALIVE_MS);
    const position = { ...pod.jobs.replica.status().position };
    const [last] = pod.jobs.line.received.flatMap(({ frame }) => frame.keepalive?.sessions ?? []).slice(-1);
    expect(last).toBeDefined();
    for (const number of [
      0,
      999,
      ...pod.jobs.line.keepalives.slice(0, 3).map((keepalive) => keepalive.number),
    ]) {
      pod.jobs.line.inject({ position, keepalive: { number, sessions: last === undefined ? [] : [last] } });
    }
    expect(pod.held('a', token).deadlineInMs).toBeLessThanOrEqual(deadlineInMs - 2 * KEEPALIVE_MS);
  });

  test('a frame of an older index or epoch is dropped as a whole', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(5_000);
    const { position } = pod.jobs.replica.status();
    const [opened] = pod.jobs.line.received
      .flatMap(({ frame }) => frame.answers)
      .filter(({ body }) => body.type === 'opened');
    const session = opened?.body.type === 'opened' ? opened.body.session : 0;
    const event = { type: 'sessionEnding', session, cause: 'expired' } as const;
    const notices = [{ session, attach: 1, event }];
    pod.jobs.line.inject({ position: { ...position, index: position.index - 1 }, notices });
    pod.jobs.line.inject({ position: { ...position, epoch: position.epoch - 1, index: 1e6 }, notices });
    expect(pod.held('a', token).held).toBe(true);
    pod.jobs.line.inject({ position, notices: [{ session, attach: 7, event }] });
    expect(pod.held('a', token).held).toBe(true);
    expect(lines).toEqual([]);
    pod.jobs.line.inject({ position, notices });
    expect(pod.held('a', token).held).toBe(false);
    expect(lines.map((line) => line.event)).toEqual(['lost', 'sessionLost']);
  });
});

describe('rule C9: a revoked token is not extended any more', () => {
  test('its deadline stays where it was when the revoke came, and the others move on', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a');
    const other = await pod.acquire('b', { sessionId });
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(10_000);
    const deadline = pod.runtime.nowMs + (pod.held('a', token).deadlineInMs ?? 0);
    await pod.jobs.break('a', token);
    await pod.runtime.pass(10);
    expect(lines.at(-1)).toMatchObject({ event: 'revoking', name: 'jobs/a', token, cause: 'break' });
    await pod.runtime.pass(KEEPALIVE_MS * 2);
    expect(pod.runtime.nowMs + (pod.held('a', token).deadlineInMs ?? 0)).toBeCloseTo(deadline, -1);
    expect(pod.runtime.nowMs + (pod.held('b', other.token).deadlineInMs ?? 0)).toBeGreaterThan(
      deadline + 2_000,
    );
    await pod.runtime.pass(deadline - pod.runtime.nowMs);
    expect(pod.held('a', token).held).toBe(false);
    expect(pod.held('b', other.token).held).toBe(true);
    await pod.runtime.pass(TTL_MS);
    expect(lines.filter(({ event }) => event === 'lost')).toHaveLength(1);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test.each([5_000, 9_000])(
    'a revoke that the sidecar learns only %i ms later, by its attach, takes "held" away before the group frees the name',
    async (blindMs) => {
      const pod = await Pod.start();
      const { token, sessionId } = await pod.holding('a');
      pod.stream(sessionId);
      const other = await pod.open({ keepalive: 'stream' });
      pod.stream(other);
      await pod.runtime.pass(10_000);
      pod.jobs.line.isDown = true;
      pod.jobs.line.break();
      await pod.jobs.break('a', token);
      const revokedAt = pod.runtime.nowMs;
      await pod.runtime.pass(blindMs);
      pod.jobs.line.isDown = false;
      let heldUntil = 0;
      while (pod.runtime.nowMs < revokedAt + TTL_MS + MARGIN_MS + 2_000) {
        if (pod.held('a', token).held) heldUntil = pod.runtime.nowMs;
        await pod.runtime.pass(100);
      }
      expect(heldUntil).toBeLessThanOrEqual(revokedAt + TTL_MS - MARGIN_MS);
      expect(await pod.jobs.tokenOf('a')).toBeNull();
    },
  );
});

/** Of a session with two locks `a` is being broken; its stream writes `lines`. */
async function revoking() {
  const pod = await Pod.start();
  const { token, sessionId } = await pod.holding('a');
  const other = await pod.acquire('b', { sessionId });
  const { lines } = pod.stream(sessionId);
  await pod.runtime.pass(1_000);
  await pod.jobs.break('a', token);
  await pod.runtime.pass(10);
  return { pod, token, other, lines };
}

describe('rule A2: a suspended machine', () => {
  test('does not say "held" when it wakes up, until the group has acknowledged again', async () => {
    const pod = await Pod.start();
    const { token, sessionId } = await pod.holding('a');
    const { lines } = pod.stream(sessionId);
    await pod.runtime.pass(1_000);
    pod.jobs.line.toClient = 'held';
    pod.runtime.stepWall(60_000);
    expect(pod.held('a', token).held).toBe(false);
    const renewal = pod.sidecar.renew('jobs/a', { sessionId, token });
    expect((await pod.refusal(renewal)).code).toBe('UNAVAILABLE');
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    expect(pod.held('a', token).held).toBe(true);
    expect(lines.filter(({ event }) => event === 'lost')).toEqual([]);
  });

  test('a grant that comes before the group has acknowledged again is given back, not forgotten', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    await pod.runtime.pass(1_000);
    pod.runtime.stepWall(60_000);
    expect((await pod.refusal(pod.acquire('b', { sessionId }))).code).toBe('UNAVAILABLE');
    await pod.runtime.pass(10);
    expect(await pod.jobs.tokenOf('b')).toBeNull();
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    expect((await pod.acquire('b', { sessionId })).token).toBeGreaterThan(0);
  });

  test('a renew, or a repeat of the acquire, is told UNAVAILABLE meanwhile: the grant is not lost', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a', { request: 'r' });
    await pod.runtime.pass(1_000);
    pod.runtime.stepWall(60_000);
    expect((await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }))).code).toBe('UNAVAILABLE');
    expect((await pod.refusal(pod.acquire('a', { sessionId, request: 'r' }))).code).toBe('UNAVAILABLE');
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    expect((await pod.acquire('a', { sessionId, request: 'r' })).token).toBe(token);
    const renewed = await pod.runtime.until(pod.sidecar.renew('jobs/a', { sessionId, token }), 100);
    expect(renewed.token).toBe(token);
  });

  test('a grant under a revoke does not come back: no acknowledgement covers it any more, and its clock stood still', async () => {
    const { pod, token, other, lines } = await revoking();
    expect(pod.held('a', token).held).toBe(true);
    // The machine slept for 6 s, which its monotonic clock did not count and the group's did.
    pod.runtime.stepWall(6_000);
    await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
    expect(pod.held('b', other.token).held).toBe(true);
    expect(pod.held('a', token).held).toBe(false);
    expect(lines.filter(({ event }) => event === 'lost')).toMatchObject([{ name: 'jobs/a', token }]);
  });

  test('a grant under a revoke is lost to short sleeps too: they add up, since no acknowledgement begins anew for it', async () => {
    const { pod, token, other, lines } = await revoking();
    for (const heldAfter of [true, true, false]) {
      pod.runtime.stepWall(900);
      expect(pod.held('a', token).held).toBe(heldAfter);
      await pod.runtime.pass(KEEPALIVE_MS + BEAT_MS);
      expect(pod.held('b', other.token).held).toBe(true);
    }
    expect(lines.filter(({ event }) => event === 'lost')).toMatchObject([{ name: 'jobs/a', token }]);
  });
});
