/** Every call ends, whatever is gone, and nothing is left of what has ended: rules S11, B07, I02; the check list of the cases. */
import { describe, expect, test } from 'vitest';
import { Pod, type PodOptions, TTL_MS } from '../../test/support/virtual/pod.ts';

/** A call ends within its own bound and this. */
const BOUND_MS = 6_000;
const HOUR_MS = 3_600_000;

const GONE: readonly (readonly [string, (pod: Pod) => unknown])[] = [
  ['the log does not answer', (pod) => Object.assign(pod.jobs.log, { isOut: true })],
  ['the log takes for ever', (pod) => pod.jobs.log.hold()],
  ['nobody leads', (pod) => pod.jobs.replica.frontEnd.setLeader(null)],
  [
    'the way is broken',
    (pod) => {
      pod.jobs.line.isDown = true;
      pod.jobs.line.break();
    },
  ],
  ['everything sent gets lost', (pod) => Object.assign(pod.jobs.line, { both: 'lost' })],
  ['every answer gets lost', (pod) => Object.assign(pod.jobs.line, { toClient: 'lost' })],
];

interface Call {
  readonly what: string;
  readonly boundMs: number;
  readonly start: (
    pod: Pod,
    held: { readonly sessionId: string; readonly token: number },
  ) => Promise<unknown>;
}

const CALLS: readonly Call[] = [
  { what: 'openSession', boundMs: 0, start: (pod) => pod.open() },
  { what: 'keepalive', boundMs: 0, start: (pod, { sessionId }) => pod.sidecar.keepaliveSession(sessionId) },
  { what: 'closeSession', boundMs: 0, start: (pod, { sessionId }) => pod.sidecar.closeSession(sessionId) },
  { what: 'acquire', boundMs: 0, start: (pod, { sessionId }) => pod.acquiring('b', { sessionId }).granted },
  {
    what: 'acquire with a request',
    boundMs: 0,
    start: (pod, { sessionId }) => pod.acquiring('b', { sessionId, request: 'r' }).granted,
  },
  {
    what: 'acquire that waits',
    boundMs: 3_000,
    start: (pod, { sessionId }) => pod.acquiring('b', { sessionId, waitMs: 3_000 }).granted,
  },
  {
    what: 'acquire that waits long',
    boundMs: 5_000,
    start: (pod, { sessionId }) => pod.acquiring('b', { sessionId, waitMs: HOUR_MS }).granted,
  },
  { what: 'acquire without a session', boundMs: 0, start: (pod) => pod.acquiring('b').granted },
  {
    what: 'acquire in a new session',
    boundMs: 0,
    start: async (pod) => pod.acquiring('b', { sessionId: await pod.open(), request: 'r' }).granted,
  },
  { what: 'release', boundMs: 0, start: (pod, held) => pod.sidecar.release('jobs/a', held) },
  {
    what: 'release of what is not held',
    boundMs: 0,
    start: (pod, { sessionId }) => pod.sidecar.release('jobs/a', { sessionId, token: 1 }),
  },
  {
    what: 'release in an unknown session',
    boundMs: 0,
    start: (pod) => pod.sidecar.release('jobs/a', { sessionId: 'x', token: 1 }),
  },
  { what: 'renew', boundMs: 0, start: (pod, held) => pod.sidecar.renew('jobs/a', held) },
  {
    what: 'renew of what is not held',
    boundMs: 0,
    start: (pod, { sessionId }) => pod.sidecar.renew('jobs/a', { sessionId, token: 1 }),
  },
  {
    what: 'reportStale',
    boundMs: 0,
    start: (pod) => pod.sidecar.reportStale('jobs/a', { token: 1, resource: 'r' }),
  },
  { what: 'getLock', boundMs: 0, start: (pod) => pod.sidecar.getLock('jobs/a') },
  { what: 'listLocks', boundMs: 0, start: (pod) => pod.sidecar.listLocks({ prefix: '', limit: 10 }) },
];

describe.each(GONE)('rule S11: when %s', (_what, go) => {
  test.each(CALLS)('$what ends within its bound', async ({ boundMs, start }) => {
    const pod = await Pod.start();
    const held = await pod.holding('a');
    go(pod);
    const startedMs = pod.runtime.nowMs;
    const call = start(pod, held).then(
      () => 'done',
      (error: { code?: string }) => error.code,
    );
    const outcome = await pod.runtime.until(call, boundMs + BOUND_MS);
    expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(boundMs + BOUND_MS);
    expect(['done', 'UNAVAILABLE', 'SESSION_EXPIRED', 'NOT_HELD']).toContain(outcome);
  });

  test.each(CALLS)('$what right after a restart of the sidecar as well', async ({ boundMs, start }) => {
    const pod = await Pod.start();
    const held = await pod.holding('a');
    go(pod);
    await pod.restart();
    const startedMs = pod.runtime.nowMs;
    const call = start(pod, held).then(
      () => 'done',
      (error: { code?: string }) => error.code,
    );
    const outcome = await pod.runtime.until(call, boundMs + BOUND_MS);
    expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(boundMs + BOUND_MS);
    expect(['done', 'UNAVAILABLE', 'SESSION_EXPIRED', 'NOT_HELD']).toContain(outcome);
  });
});

describe('rule S11: new calls during an outage', () => {
  test.each([
    [0, 2_000],
    [1_000, 2_000],
    [3_000, 3_000],
    [HOUR_MS, 5_000],
  ])('with wait_ms %i are told UNAVAILABLE after %i ms at the latest', async (waitMs, limitMs) => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    pod.jobs.log.isOut = true;
    const startedMs = pod.runtime.nowMs;
    const error = await pod.refusal(pod.acquiring('b', { sessionId, waitMs }).granted);
    expect(error.code).toBe('UNAVAILABLE');
    expect(pod.runtime.nowMs - startedMs).toBeLessThanOrEqual(limitMs + 1);
    pod.jobs.log.isOut = false;
    await pod.runtime.pass(3_000);
    expect(await pod.jobs.tokenOf('b')).toBeNull();
  });

  test('a release told UNAVAILABLE is done when the log is back; so is a DELETE', async () => {
    const pod = await Pod.start();
    const first = await pod.holding('a');
    const second = await pod.holding('b');
    pod.jobs.log.isOut = true;
    expect((await pod.refusal(pod.sidecar.release('jobs/a', first))).code).toBe('UNAVAILABLE');
    expect((await pod.refusal(pod.sidecar.closeSession(second.sessionId))).code).toBe('UNAVAILABLE');
    expect(pod.held('a', first.token).held).toBe(false);
    pod.jobs.log.isOut = false;
    await pod.runtime.pass(3_000);
    expect([await pod.jobs.tokenOf('a'), await pod.jobs.tokenOf('b')]).toEqual([null, null]);
    expect(pod.jobs.replica.status().sessions).toBe(1);
    expect(pod.counts.lost).toBe(0);
  });
});

describe('the end of a session', () => {
  test.each(GONE)('is told at once to whoever renews in it, while %s', async (_, breaks) => {
    const pod = await Pod.start();
    const { sessionId, token, keeping } = await pod.holding('a');
    keeping.stop();
    breaks(pod);
    await pod.runtime.pass(2 * TTL_MS);
    const error = await pod.refusal(pod.sidecar.renew('jobs/a', { sessionId, token }), 600);
    expect(error.code).toBe('SESSION_EXPIRED');
  });
});

describe('a long outage', () => {
  test('in which an application tries again and again leaves nothing piled up', async () => {
    const pod = await Pod.start();
    const { sessionId } = await pod.holding('a');
    pod.jobs.log.isOut = true;
    for (let i = 0; i < 200; i++) {
      const tries = [pod.acquiring('b'), pod.acquiring('c', { ttlMs: TTL_MS, waitMs: 1_000 })];
      await pod.runtime.pass(3_000);
      expect(tries.map(({ outcome }) => outcome.value)).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
    }
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
    expect(pod.store.size).toBe(0);
    const opens = pod.jobs.line.requests('open').length;
    // One for each try, and again for the two that are under way when a stream is replaced: what was given up is not asked for again.
    expect(opens).toBeLessThanOrEqual(2 * 200 + 1 + 2 * pod.jobs.line.connects);
    pod.jobs.log.isOut = false;
    await pod.runtime.pass(2_000);
    expect(pod.jobs.line.requests('open').length - opens).toBeLessThanOrEqual(2);
    // Sessions that were opened for tries long given up go by themselves.
    expect(pod.jobs.replica.status().held).toBe(0);
    expect(pod.jobs.replica.status().sessions).toBeLessThan(20);
    await pod.runtime.pass(2 * TTL_MS);
    expect(pod.jobs.replica.status().sessions).toBe(0);
  });
});

describe('rule A4: the sidecar cannot write its state', () => {
  test('nothing is told as granted; the group and other sessions notice nothing, and nothing stays held', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    await pod.acquire('b', { sessionId });
    const { put } = pod.store;
    let isFull = true;
    pod.store.put = (record) => {
      if (isFull && record.type === 'grant') throw new Error('ENOSPC');
      put.call(pod.store, record);
    };
    expect((await pod.refusal(pod.acquiring('c', { sessionId }).granted)).code).toBe('UNAVAILABLE');
    expect(pod.jobs.stopped).toEqual([]);
    isFull = false;
    await pod.runtime.pass(TTL_MS);
    expect(pod.held('a', holder.token).held).toBe(true);
    expect(await pod.jobs.tokenOf('c')).toBeNull();
    expect((await pod.acquire('c', { sessionId })).token).toBeGreaterThan(0);
  });
});

/** What a quiet pod and its group are left with. */
async function leftOvers(pod: Pod) {
  await pod.runtime.pass(2 * TTL_MS);
  const { sessions, held, waiting, names } = pod.jobs.replica.status();
  return { sessions, held, waiting, names, records: pod.store.size, figures: pod.sidecar.figures('jobs') };
}

const NOTHING = {
  sessions: 0,
  held: 0,
  waiting: 0,
  names: 0,
  records: 0,
  figures: { sessions: 0, grants: 0, waits: 0 },
};

/** Timers that fire in a minute: the beats of an idle leader, one in two seconds, and the end of the minute. */
async function quietSteps(pod: Pod): Promise<number> {
  const { steps } = pod.runtime;
  await pod.runtime.pass(60_000);
  return pod.runtime.steps - steps;
}

describe('nothing is left of what has ended', () => {
  const options: PodOptions = {};

  test('of sessions of every kind and end', async () => {
    const pod = await Pod.start(options);
    const idle = await quietSteps(pod);
    for (const keepalive of ['app', 'stream', 'both'] as const) {
      for (const end of ['delete', 'silence', 'stream', 'release'] as const) {
        const sessionId = await pod.open({ keepalive });
        const stream = pod.stream(sessionId);
        const { token } = await pod.acquire('a', { sessionId, waitMs: HOUR_MS, request: 'r' });
        if (end === 'release') await pod.release('a', sessionId, token);
        if (end === 'stream') stream.close();
        if (end === 'delete') await pod.runtime.until(pod.sidecar.closeSession(sessionId), 1_000);
        if (end === 'silence') await pod.runtime.pass(TTL_MS + 10);
        stream.close();
      }
    }
    expect(await leftOvers(pod)).toEqual(NOTHING);
    expect(Math.abs((await quietSteps(pod)) - idle)).toBeLessThanOrEqual(1);
  });

  test('of acquires of every outcome', async () => {
    const pod = await Pod.start(options);
    const holder = await pod.holding('a');
    const sessionId = await pod.open();
    const keeping = pod.keepAlive(sessionId);
    for (let i = 0; i < 20; i++) {
      const call = { sessionId, ...(i % 2 === 0 ? { request: `r${i}` } : {}) };
      const { token } = await pod.acquire(`n${i}`, call);
      await pod.release(`n${i}`, sessionId, token);
      await pod.refusal(pod.acquire('a', call));
      await pod.refusal(pod.acquire('a', { ...call, waitMs: 100 }));
      const gone = pod.acquiring('a', { ...call, waitMs: HOUR_MS });
      await pod.runtime.pass(5);
      gone.hangUp();
      const told = pod.acquiring(`m${i}`, { sessionId });
      await pod.runtime.until(told.granted, 100);
      told.hangUp();
      await pod.runtime.pass(5);
    }
    expect(pod.sidecar.figures('jobs')).toEqual({ sessions: 2, grants: 1, waits: 0 });
    expect(pod.jobs.replica.status()).toMatchObject({ held: 1, waiting: 0, names: 1 });
    keeping.stop();
    holder.keeping.stop();
    expect(await leftOvers(pod)).toEqual(NOTHING);
  });

  test('of a thousand names and requests in one long session', async () => {
    const pod = await Pod.start(options);
    const { sessionId, keeping } = await pod.holding('kept');
    const sizes: number[] = [];
    for (let i = 0; i < 1_000; i++) {
      const { token } = await pod.acquire(`n${i}`, { sessionId, request: `r${i}` });
      await pod.release(`n${i}`, sessionId, token);
      if (i % 100 === 99) sizes.push(pod.store.size);
    }
    // Envelope, group session, the one grant, and the last 256 requests.
    expect(sizes.at(-1)).toBe(3 + 256);
    expect(pod.jobs.replica.status()).toMatchObject({ held: 1, names: 1 });
    keeping.stop();
    expect(await leftOvers(pod)).toEqual(NOTHING);
  });

  test('of sessions whose group comes and goes', async () => {
    const pod = await Pod.start(options);
    const idle = await quietSteps(pod);
    for (let round = 0; round < 10; round++) {
      const holder = await pod.holding('a');
      const waiting = pod.acquiring('a', { ttlMs: TTL_MS, waitMs: HOUR_MS });
      const fresh = await pod.open();
      const opening = pod.acquiring('b', { sessionId: fresh });
      pod.jobs.kill();
      await pod.runtime.pass(round * 400);
      await pod.jobs.start();
      await pod.runtime.pass(1_000);
      for (const { hangUp } of [waiting, opening]) hangUp();
      await pod.runtime.until(
        pod.sidecar.closeSession(fresh).catch(() => undefined),
        6_000,
      );
      holder.keeping.stop();
      await pod.runtime.pass(3 * TTL_MS);
    }
    expect(await leftOvers(pod)).toEqual(NOTHING);
    expect(pod.jobs.line.streams).toBe(1);
    expect(Math.abs((await quietSteps(pod)) - idle)).toBeLessThanOrEqual(1);
  });

  test('of promises: nothing that happened above rejected unheard', async () => {
    const unheard: unknown[] = [];
    const hear = (reason: unknown): void => void unheard.push(reason);
    process.on('unhandledRejection', hear);
    const pod = await Pod.start(options);
    const { sessionId } = await pod.holding('a');
    const stream = await pod.open({ keepalive: 'stream' });
    pod.stream(stream);
    await pod.acquire('b', { sessionId: stream });
    pod.jobs.log.isOut = true;
    for (let i = 0; i < 5; i++) {
      pod.acquiring('c', { sessionId });
      pod.acquiring('c', { ttlMs: TTL_MS, waitMs: HOUR_MS });
      await pod.runtime.pass(3_000);
      pod.jobs.line.break();
    }
    await pod.runtime.pass(2 * TTL_MS);
    pod.jobs.log.isOut = false;
    await pod.runtime.pass(2 * TTL_MS);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', hear);
    expect(unheard).toEqual([]);
  });
});
