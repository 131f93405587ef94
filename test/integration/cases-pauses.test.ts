/** What a whole process that stands still does to others and to itself: `leasehold dev` stopped with SIGSTOP, and let go on. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { DevProcess } from '../support/dev/dev-process.ts';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { Workspace } from '../support/dev/workspace.ts';

const TTL_MS = 5_000;
/** Of applications whose lease is to run out, or nearly. */
const SHORT = { ttl_s: TTL_MS / 1_000 };
/** Longer than a call waits for an answer, shorter than a lease. */
const SHORT_PAUSE_MS = 2_500;
const LONG_PAUSE_MS = TTL_MS + 2_000;
/** Promise 4 after a standstill: its length counts once, keepalives in the sockets get TTL/3. */
const FREED_WITHIN_MS = 2 * TTL_MS;

const workspaces = [new Workspace(), new Workspace()];
const processes: DevProcess[] = [];

beforeAll(async () => {
  for (const workspace of workspaces) {
    workspace.write({ name: 'pauses' });
    processes.push(await DevProcess.start({ manifests: [workspace.manifests], data: workspace.data }));
  }
}, 60_000);

afterAll(async () => {
  for (const dev of processes) await dev.stop();
  for (const workspace of workspaces) workspace.remove();
});

describe.concurrent('a process that stands still', () => {
  test('cases C04, C10: an acquire given up during a pause leaves no holder; who lives keeps what it has', async ({
    expect,
  }) => {
    const [dev] = processes as [DevProcess];
    const api = new LockApi(dev.port, 'pauses');
    const session = await api.open(SHORT);
    const held = await api.lock('kept', { session_id: session });
    const waiting = api.acquire('kept', { session_id: await api.open(), wait_ms: 60_000 });
    await api.waiting('kept', 1);
    dev.freeze();
    const hangUp = new AbortController();
    const given = Array.from({ length: 20 }, (_, i) =>
      api
        .acquire(`given-up-${i}`, { session_id: session, request: `r-${i}` }, hangUp.signal)
        .catch(() => null),
    );
    await pause(SHORT_PAUSE_MS);
    hangUp.abort();
    expect((await Promise.all(given)).every((answer) => answer === null)).toBe(true);
    dev.thaw();
    expect((await api.renew(held)).status).toBe(200);
    await eventually(async () => (await api.acquiresEnded()) >= 20);
    // Either gone, or found by asking again: never a holder nobody knows.
    for (let i = 0; i < 20; i++) {
      const call = { session_id: session, request: `r-${i}` };
      let answer = await api.acquire(`given-up-${i}`, call);
      // The cancel of the first call is still on its way.
      while (answer.body.code === 'UNAVAILABLE') answer = await api.acquire(`given-up-${i}`, call);
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      await api.release({ name: `given-up-${i}`, session, token: Number(answer.body.token) });
    }
    expect(await api.names()).toEqual(['pauses/kept']);
    expect(await api.get('kept')).toMatchObject({ token: held.token, waiters: 1 });
    await api.release(held);
    expect((await waiting).status).toBe(200);
    api.end();
  });

  test('cases A10, E06, E13: after a pause longer than the lease its grants are lost, are told so, and the next one is granted', async ({
    expect,
  }) => {
    const [, dev] = processes as [DevProcess, DevProcess];
    const api = new LockApi(dev.port, 'pauses');
    const session = await api.open(SHORT);
    const stream = await api.stream(session);
    const held = await api.lock('slept', { session_id: session });
    const next = api.acquire('slept', { session_id: await api.open(), wait_ms: 60_000 });
    await api.waiting('slept', 1);
    dev.freeze();
    await pause(LONG_PAUSE_MS);
    const thawedAt = performance.now();
    dev.thaw();
    // By the clock alone, before anything else can have happened.
    expect(await api.isHeld(held)).toBe(false);
    const { status, body } = await next;
    expect(performance.now() - thawedAt).toBeLessThan(FREED_WITHIN_MS);
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.token).toBeGreaterThan(held.token);
    await stream.ended;
    expect(stream.lines.filter(({ event }) => event === 'lost')).toMatchObject([{ token: held.token }]);
    expect(stream.lines.at(-1)).toMatchObject({ event: 'session_lost' });
    for (const answer of [await api.renew(held), await api.keepalive(session)]) {
      expect(answer).toMatchObject({ status: 410, body: { code: 'SESSION_EXPIRED' } });
    }
    expect(await api.tokenOf('slept')).toBe(body.token);
    api.end();
  });
});
