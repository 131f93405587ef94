/** An acquire from the application's call to its outcome: rules A5, C4. */
import { describe, expect, test } from 'vitest';
import { Pod } from '../../test/support/virtual/pod.ts';
import { VirtualRuntime } from '../../test/support/virtual-runtime.ts';
import { type AnswerBody, type ClientHandler, type ClientRequest, unavailable } from '../api/wire.ts';
import { silentSidecarMetrics } from '../platform/metrics.fixture.ts';
import type { Connect } from './group-client.ts';
import { Sidecar } from './sidecar.ts';
import { MemoryStateStore } from './state-store.ts';

const HOUR_MS = 3_600_000;

/** A pod whose lock `a` is held by one session, and another session that is kept alive. */
async function contended() {
  const pod = await Pod.start();
  const holder = await pod.holding('a');
  const sessionId = await pod.open();
  pod.keepAlive(sessionId);
  await pod.runtime.pass(10);
  return { pod, holder, sessionId };
}

test('rule A5: a wait whose answer was lost with its stream is known by the attach, and not asked for again', async () => {
  const pod = await Pod.start({ config: { operationsPerSecond: 1 } });
  const holder = await pod.holding('a');
  const sessionId = await pod.open();
  pod.keepAlive(holder.sessionId);
  pod.keepAlive(sessionId);
  await pod.runtime.pass(5_000);
  await pod.acquire('b', { sessionId });
  await pod.runtime.pass(5_000);
  pod.jobs.line.toClient = 'lost';
  const waiting = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
  await pod.runtime.pass(10);
  pod.jobs.line.break();
  pod.jobs.line.toClient = 'flows';
  // The front end would refuse it a second time, and the group would keep its place for nobody.
  await pod.runtime.pass(500);
  expect(waiting.outcome.value).toBeNull();
  await pod.release('a', holder.sessionId, holder.token);
  await pod.runtime.pass(10);
  expect(waiting.outcome.value).toBe('granted');
});

/** A sidecar whose group is the test: it sees what is sent, and answers the newest of that. */
function scripted() {
  const runtime = new VirtualRuntime();
  const sidecar = new Sidecar({ runtime, store: new MemoryStateStore() });
  const sent: ClientRequest[] = [];
  let handler: ClientHandler | null = null;
  const connect: Connect = (given) => {
    handler = given;
    return { send: ({ requests }) => void sent.push(...requests), close: () => undefined };
  };
  const defaults = () => ({ ttlMs: 15_000, maxHoldMs: HOUR_MS });
  sidecar.addNamespace({ alias: 'jobs', connect, metrics: silentSidecarMetrics, defaults });
  const say = async (body: AnswerBody | null, { epoch = 1, leading = true } = {}): Promise<void> => {
    const position = { lineage: 'l', epoch, index: 1 };
    const answers = body === null ? [] : [{ id: sent.at(-1)?.id ?? 0, body }];
    handler?.onFrame({ position, leading, answers, notices: [] });
    await runtime.pass(1);
  };
  const acquire = (sessionId: string): Promise<string> => {
    const options = { mode: 'exclusive', permits: 1, reentrant: false, waitMs: 0, purpose: '' } as const;
    const hangUp = new AbortController().signal;
    return sidecar.acquire('jobs/a', { ...options, sessionId, hangUp }).then(
      () => 'granted',
      ({ code }) => code,
    );
  };
  return { runtime, sidecar, say, acquire, types: () => sent.map(({ body }) => body.type) };
}

test.each([
  { by: 'the leader it was sent to', isCut: false, epoch: 1, leading: true, sends: [] },
  {
    by: 'the same leader, found again by its front end',
    isCut: true,
    epoch: 1,
    leading: true,
    sends: ['cancel'],
  },
  { by: 'another leader', isCut: false, epoch: 2, leading: true, sends: ['cancel'] },
  { by: 'a front end without a leader', isCut: false, epoch: 1, leading: false, sends: ['cancel'] },
])('rule A5: rejected by $by, an acquire may have been granted before: it sends $sends', async (scene) => {
  const { runtime, sidecar, say, acquire, types } = scripted();
  const { sessionId } = await sidecar.openSession({ client: 'c', keepalive: 'app' });
  const outcome = acquire(sessionId);
  await runtime.pass(1);
  await say({ type: 'opened', session: 1 });
  expect(types()).toEqual(['open', 'acquire']);
  // As a front end tells of a leader that it has lost and found.
  if (scene.isCut) for (const leading of [false, true]) await say(null, { leading });
  await say(unavailable('not now'), scene);
  expect(await outcome).toBe('UNAVAILABLE');
  expect(types().slice(2)).toEqual(scene.sends);
});

test('a session that is closed before the group could open it is not opened any more', async () => {
  const { runtime, sidecar, say, acquire, types } = scripted();
  const { sessionId } = await sidecar.openSession({ client: 'c', keepalive: 'app' });
  const outcome = acquire(sessionId);
  await runtime.pass(1);
  await say(unavailable('nobody leads'));
  const closed = sidecar.closeSession(sessionId).then(() => 'closed');
  for (let i = 0; i < 5; i++) {
    await runtime.pass(1_000);
    await say(unavailable('nobody leads'));
  }
  expect(await closed).toBe('closed');
  expect(await outcome).toBe('SESSION_EXPIRED');
  // Not more than the one that was planned.
  expect(types()).toEqual(['open', 'open']);
});

test('rule S11: a first acquire with a request is told of the outage as one without, and as soon', async () => {
  const pod = await Pod.start();
  const sessionId = await pod.open();
  pod.jobs.line.both = 'lost';
  const startedMs = pod.runtime.nowMs;
  const plain = await pod.refusal(pod.acquiring('a', { sessionId }).granted);
  const plainMs = pod.runtime.nowMs - startedMs;
  const named = await pod.refusal(pod.acquiring('a', { sessionId, request: 'r' }).granted);
  expect([named.code, named.message]).toEqual([plain.code, plain.message]);
  expect(pod.runtime.nowMs - startedMs - plainMs).toBe(plainMs);
});

describe('rule A5: hang-ups', () => {
  test('of a waiting call: the wait is cancelled, the others move up', async () => {
    const { pod, holder, sessionId } = await contended();
    const [first, second] = [0, 1].map(() => pod.acquiring('a', { sessionId, waitMs: HOUR_MS }));
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(2);
    first?.hangUp();
    await pod.runtime.pass(10);
    expect(first?.outcome.value).toBe('CANCELLED');
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    await pod.release('a', holder.sessionId, holder.token);
    await pod.runtime.pass(10);
    expect(second?.outcome.value).toBe('granted');
  });

  test('between the grant and its answer: the grant is undone, and the next one has the lock', async () => {
    const { pod, holder, sessionId } = await contended();
    const first = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    const second = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.toClient = 'held';
    const released = pod.sidecar.release('jobs/a', holder);
    await pod.runtime.pass(10);
    first.hangUp();
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.until(released, 100);
    await pod.runtime.pass(10);
    expect([first.outcome.value, second.outcome.value]).toEqual(['CANCELLED', 'granted']);
    expect(await pod.jobs.tokenOf('a')).toBe((await second.granted).token);
  });

  test('after the grant, before its answer was written: it is undone as well, without a word of loss', async () => {
    const { pod, sessionId } = await contended();
    const { lines } = pod.stream(sessionId);
    const acquiring = pod.acquiring('b', { sessionId });
    const { token } = await pod.runtime.until(acquiring.granted, 100);
    acquiring.hangUp();
    expect(pod.held('b', token).held).toBe(false);
    await pod.runtime.pass(10);
    expect(await pod.jobs.tokenOf('b')).toBeNull();
    expect(lines.filter(({ event }) => event === 'lost')).toEqual([]);
    expect(pod.counts).toMatchObject({ lost: 0, expiredWhileWorking: 0 });
  });

  test('before anything was sent: nothing is', async () => {
    const { pod, sessionId } = await contended();
    const sent = pod.jobs.line.requests('acquire').length;
    const hangUp = AbortSignal.abort();
    expect((await pod.refusal(pod.acquire('b', { sessionId, hangUp }))).code).toBe('CANCELLED');
    await pod.runtime.pass(10);
    expect(pod.jobs.line.requests('acquire')).toHaveLength(sent);
    expect(pod.jobs.line.requests('cancel')).toEqual([]);
  });

  test('while the way to the group is broken: the cancel goes on until it is confirmed', async () => {
    const { pod, holder, sessionId } = await contended();
    const acquiring = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    pod.jobs.line.toServer = 'lost';
    acquiring.hangUp();
    await pod.runtime.pass(3_000);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    pod.jobs.line.break();
    pod.jobs.line.toServer = 'flows';
    await pod.runtime.pass(1_000);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(0);
    await pod.release('a', holder.sessionId, holder.token);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
  });

  test('of an acquire whose answer never came: it is cancelled, and not sent again behind its own cancel', async () => {
    const { pod, sessionId } = await contended();
    await pod.acquire('c', { sessionId });
    pod.jobs.line.both = 'lost';
    const acquiring = pod.acquiring('b', { sessionId });
    await pod.runtime.pass(500);
    acquiring.hangUp();
    pod.jobs.line.break();
    pod.jobs.line.both = 'flows';
    await pod.runtime.pass(1_000);
    expect(acquiring.outcome.value).toBe('CANCELLED');
    expect(await pod.jobs.tokenOf('b')).toBeNull();
    expect(pod.jobs.line.requests('acquire').filter(({ name }) => name === 'b')).toHaveLength(1);
    expect(pod.jobs.replica.status().held).toBe(2);
  });

  test('of a wait that was asked for again over two streams: neither is sent again behind its cancel', async () => {
    const { pod, sessionId } = await contended();
    const { line, replica } = pod.jobs;
    const acquiring = pod.acquiring('a', { sessionId, waitMs: HOUR_MS });
    await pod.runtime.pass(10);
    line.toClient = 'lost';
    await pod.runtime.until(replica.submit({ type: 'quarantine', name: 'a', reason: 'test' }), 100);
    for (const _ of ['first', 'second']) {
      line.break();
      line.both = 'flows';
      line.toClient = 'held';
      await pod.runtime.pass(500);
      // It hears that it waits no more, and what it asks then is lost.
      line.toServer = 'lost';
      line.toClient = 'flows';
      await pod.runtime.pass(10);
    }
    const asked = () => line.requests('acquire').filter(({ name }) => name === 'a').length;
    expect(asked()).toBeGreaterThan(2);
    acquiring.hangUp();
    const before = asked();
    line.break();
    line.both = 'flows';
    await pod.runtime.pass(1_000);
    expect(acquiring.outcome.value).toBe('CANCELLED');
    expect(asked()).toBe(before);
  });

  test('a release goes on after its caller has gone', async () => {
    const { pod, holder } = await contended();
    pod.jobs.line.toServer = 'lost';
    const released = pod.sidecar.release('jobs/a', holder);
    released.catch(() => undefined);
    await pod.runtime.pass(500);
    expect(pod.held('a', holder.token).held).toBe(false);
    pod.jobs.line.break();
    pod.jobs.line.toServer = 'flows';
    await pod.runtime.pass(500);
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    await expect(released).resolves.toEqual({ already: false });
  });
});

describe('rule C4: the same request again', () => {
  test('joins the one under way; one hang-up does not cancel the other', async () => {
    const { pod, holder, sessionId } = await contended();
    const call = { sessionId, waitMs: HOUR_MS, request: 'r' };
    const [first, second] = [pod.acquiring('a', call), pod.acquiring('a', call)];
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    first.hangUp();
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    await pod.release('a', holder.sessionId, holder.token);
    await pod.runtime.pass(10);
    expect([first.outcome.value, second.outcome.value]).toEqual(['CANCELLED', 'granted']);
  });

  test('the last hang-up cancels it', async () => {
    const { pod, sessionId } = await contended();
    const call = { sessionId, waitMs: HOUR_MS, request: 'r' };
    const calls = [pod.acquiring('a', call), pod.acquiring('a', call)];
    await pod.runtime.pass(10);
    for (const { hangUp } of calls) hangUp();
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(0);
    // Confirmed: the request may be used anew.
    expect((await pod.acquire('b', { ...call, waitMs: 0 })).token).toBeGreaterThan(0);
  });

  test('is answered with the token while it is held; a hang-up of one of two told calls leaves the other its grant', async () => {
    const { pod, sessionId } = await contended();
    const call = { sessionId, request: 'r' };
    const first = pod.acquiring('b', call);
    const { token } = await pod.runtime.until(first.granted, 100);
    const second = pod.acquiring('b', call);
    expect((await pod.runtime.until(second.granted, 100)).token).toBe(token);
    first.hangUp();
    await pod.runtime.pass(10);
    expect(await pod.jobs.tokenOf('b')).toBe(token);
    second.hangUp();
    await pod.runtime.pass(10);
    expect(await pod.jobs.tokenOf('b')).toBeNull();
    expect(pod.jobs.line.requests('acquire').filter(({ name }) => name === 'b')).toHaveLength(1);
  });

  test('is told NOT_HELD once the grant is over, for the last 256 of them', async () => {
    const { pod, sessionId } = await contended();
    const finish = async (request: string) => {
      const { token } = await pod.acquire('b', { sessionId, request });
      await pod.release('b', sessionId, token);
      return token;
    };
    const token = await finish('first');
    const again = await pod.refusal(pod.acquire('b', { sessionId, request: 'first' }));
    expect(again).toMatchObject({ code: 'NOT_HELD', details: { token } });
    for (let i = 0; i < 256; i++) await finish(`r${i}`);
    expect((await pod.refusal(pod.acquire('b', { sessionId, request: 'r0' }))).code).toBe('NOT_HELD');
    expect((await pod.acquire('b', { sessionId, request: 'first' })).token).toBeGreaterThan(token);
  });

  test('with another body is INVALID and changes nothing', async () => {
    const { pod, sessionId } = await contended();
    const { token } = await pod.acquire('b', { sessionId, request: 'r' });
    for (const differs of [
      { owner: 'other' },
      { mode: 'shared' as const },
      { permits: 2 },
      { reentrant: true },
    ]) {
      const error = await pod.refusal(pod.acquire('b', { sessionId, request: 'r', ...differs }));
      expect(error).toMatchObject({ code: 'INVALID', details: { field: 'request' } });
    }
    expect((await pod.refusal(pod.acquire('c', { sessionId, request: 'r' }))).code).toBe('INVALID');
    expect((await pod.acquire('b', { sessionId, request: 'r', purpose: 'another', waitMs: 500 })).token).toBe(
      token,
    );
  });

  test('a refusal is no outcome for ever: the same request may be tried anew', async () => {
    const { pod, holder, sessionId } = await contended();
    const call = { sessionId, request: 'r' };
    expect((await pod.refusal(pod.acquire('a', call))).code).toBe('HELD');
    await pod.release('a', holder.sessionId, holder.token);
    expect((await pod.acquire('a', call)).token).toBeGreaterThan(holder.token);
  });

  test('while an earlier attempt of it is being cancelled: UNAVAILABLE, then it is a new one', async () => {
    const { pod, sessionId } = await contended();
    const call = { sessionId, waitMs: HOUR_MS, request: 'r' };
    const acquiring = pod.acquiring('a', call);
    await pod.runtime.pass(10);
    pod.jobs.log.hold();
    acquiring.hangUp();
    expect((await pod.refusal(pod.acquire('a', call))).code).toBe('UNAVAILABLE');
    pod.jobs.log.letGo();
    await pod.runtime.pass(10);
    const anew = pod.acquiring('a', call);
    await pod.runtime.pass(10);
    expect(anew.outcome.value).toBeNull();
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
  });

  test('refused by the group while its cancel is on its way: a repeat is still one attempt, not two', async () => {
    const { pod, sessionId } = await contended();
    const options = { sessionId, waitMs: HOUR_MS, request: 'r' };
    const first = pod.acquiring('a', options);
    await pod.runtime.pass(10);
    pod.jobs.line.toServer = 'held';
    first.hangUp();
    await pod.runtime.pass(10);
    const { replica } = pod.jobs;
    const why = { name: 'a', reason: 'test', by: 'me' } as const;
    await pod.runtime.until(replica.submit({ type: 'quarantine', name: 'a', reason: 'test' }), 100);
    await pod.runtime.until(replica.submit({ type: 'unquarantine', ...why }), 100);
    await pod.runtime.pass(10);
    expect((await pod.refusal(pod.acquire('a', options))).code).toBe('UNAVAILABLE');
    pod.jobs.line.toServer = 'flows';
    await pod.runtime.pass(10);
    const repeats = [pod.acquiring('a', options), pod.acquiring('a', options)];
    await pod.runtime.pass(10);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
    expect(repeats.map(({ outcome }) => outcome.value)).toEqual([null, null]);
  });

  test('a repeat waits as long as it asked for itself, not as long as the first call', async () => {
    const { pod, sessionId } = await contended();
    const first = pod.acquiring('a', { sessionId, waitMs: HOUR_MS, request: 'r' });
    await pod.runtime.pass(10);
    const startedMs = pod.runtime.nowMs;
    const repeat = pod.acquiring('a', { sessionId, waitMs: 4_000, request: 'r' });
    expect((await pod.refusal(repeat.granted)).code).toBe('WAIT_TIMEOUT');
    expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(4_000 + 1_000);
    const impatient = pod.acquiring('a', { sessionId, waitMs: 0, request: 'r' });
    expect((await pod.refusal(impatient.granted, 1_000)).code).toBe('WAIT_TIMEOUT');
    await pod.runtime.pass(10);
    expect(first.outcome.value).toBeNull();
    expect((await pod.jobs.lock('a')).waiterCount).toBe(1);
  });
});

describe('limits of waiting', () => {
  test('a wait ends with WAIT_TIMEOUT and the holder, and leaves the queue', async () => {
    const { pod, holder, sessionId } = await contended();
    const startedMs = pod.runtime.nowMs;
    const error = await pod.refusal(pod.acquire('a', { sessionId, waitMs: 3_000 }));
    expect(error).toMatchObject({
      code: 'WAIT_TIMEOUT',
      details: { name: 'jobs/a', holder: { token: holder.token } },
    });
    expect(pod.runtime.nowMs - startedMs).toBeLessThan(3_100);
    expect((await pod.jobs.lock('a')).waiterCount).toBe(0);
  });

  test('a grant in the very moment of the time-out belongs to one of them alone', async () => {
    const { pod, holder, sessionId } = await contended();
    const acquiring = pod.acquiring('a', { sessionId, waitMs: 3_000 });
    await pod.runtime.pass(2_999);
    pod.jobs.line.toClient = 'held';
    const released = pod.sidecar.release('jobs/a', holder);
    released.catch(() => undefined);
    await pod.runtime.pass(2_000);
    // By itself the call has given up by now; the grant lies in the line.
    expect(acquiring.outcome.value).not.toBe('granted');
    pod.jobs.line.toClient = 'flows';
    await pod.runtime.pass(1_000);
    expect(acquiring.outcome.value).toBe('WAIT_TIMEOUT');
    expect(await pod.jobs.tokenOf('a')).toBeNull();
    expect(pod.jobs.replica.status()).toMatchObject({ held: 0, waiting: 0 });
  });
});
