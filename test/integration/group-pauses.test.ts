/**
 * Processes of a group stand still, for less and for more than a TTL: a front end or the leader costs nobody a session (rules S7, S8); a sidecar keeps everything
 * when it comes back in time, and has lost everything, and says so, when it does not (rules A1, S2).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Held, LockApi } from '../support/dev/lock-api.ts';
import { ETCD_START_MS_MAX } from '../support/etcd.ts';
import { ALIAS, SERVERS } from '../support/group/group-bench.ts';
import { GroupScene } from '../support/group/group-scene.ts';

const TTL_MS = 6_000;
/** From the last keepalive on (rule A1). */
const BELIEF_MS = TTL_MS - TTL_MS / 5;
const NS_PER_MS = 1e6;

let scene: GroupScene;
let apis: LockApi[];

beforeAll(async () => {
  scene = await GroupScene.start({ ttlMs: TTL_MS, sidecars: 2 });
  apis = scene.bench.sidecars.map(
    (name) => new LockApi(Number(new URL(scene.bench.planned(name).healthUrl).port), ALIAS),
  );
}, ETCD_START_MS_MAX);

afterAll(async () => {
  for (const api of apis ?? []) api.end();
  await scene?.end();
}, 60_000);

describe('a front end with clients on it', () => {
  test.each([
    ['less', TTL_MS / 4],
    ['more', TTL_MS + 2_000],
  ])(
    'stands still for %s than the TTL: nobody loses anything',
    async (_, stillMs) => {
      await scene.clients.spread();
      const leader = await scene.bench.leader();
      const still = SERVERS.findIndex((name) => name !== leader);
      scene.bench.group.signal(SERVERS[still] as string, 'SIGSTOP');
      const sinceMs = performance.now();
      const granted = scene.firstGrant(sinceMs, [still]);
      await pause(stillMs);
      scene.bench.group.signal(SERVERS[still] as string, 'SIGCONT');
      console.log(
        `a front end still for ${stillMs} ms: ${await granted} ms to the first grant of its clients`,
      );
      await scene.expectIntact();
    },
    60_000,
  );
});

describe('the leader, with clients on it', () => {
  test.each([
    ['less', TTL_MS / 4],
    ['more', TTL_MS + 2_000],
  ])(
    'stands still for %s than the TTL: another one leads, and nobody loses anything',
    async (_, stillMs) => {
      await scene.clients.spread();
      const leader = await scene.bench.leader();
      scene.bench.group.signal(leader, 'SIGSTOP');
      const sinceMs = performance.now();
      const others = SERVERS.map((_name, at) => at).filter((at) => SERVERS[at] !== leader);
      const granted = scene.firstGrant(sinceMs, others);
      await pause(stillMs);
      scene.bench.group.signal(leader, 'SIGCONT');
      console.log(
        `the leader still for ${stillMs} ms: ${await granted} ms to the first grant of a successor`,
      );
      await expect
        .poll(async () => (await scene.bench.status(leader))?.role, { timeout: 10_000 })
        .toBe('following');
      await scene.expectIntact();
    },
    60_000,
  );
});

/** With a keepalive each second until it is told to stop; the deadline that each answer tells, ms of this process. */
class App {
  readonly deadlines: number[] = [];
  readonly codes: string[] = [];
  readonly #api: LockApi;
  readonly #session: string;
  readonly #ending = new AbortController();

  private constructor(api: LockApi, session: string) {
    this.#api = api;
    this.#session = session;
  }

  static async open(api: LockApi): Promise<{ readonly app: App; readonly session: string }> {
    const session = await api.open({ ttl_s: TTL_MS / 1_000 });
    const app = new App(api, session);
    app.#live().catch((error: unknown) => app.codes.push(String(error)));
    return { app, session };
  }

  end(): void {
    this.#ending.abort();
  }

  async #live(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      const { status, body } = await this.#api.keepalive(this.#session);
      const inMs =
        Number(BigInt(String(body.deadline_monotonic_ns ?? 0)) - process.hrtime.bigint()) / NS_PER_MS;
      if (status === 200) this.deadlines.push(performance.now() + inMs);
      else this.codes.push(String(body.code));
      await pause(1_000, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function holding(api: LockApi, name: string): Promise<{ readonly app: App; readonly held: Held }> {
  const { app, session } = await App.open(api);
  return { app, held: await api.lock(name, { session_id: session, wait_ms: 5_000 }) };
}

describe('a sidecar with applications on it', () => {
  test('stands still for less than the TTL: it keeps everything', async () => {
    const [api, other] = apis as [LockApi, LockApi];
    const { app, held } = await holding(api, 'short');
    const waiter = await App.open(other);
    const waiting = other.acquire('short', { session_id: waiter.session, wait_ms: 30_000 });
    await pause(1_500);
    scene.bench.group.signal('sidecar-1', 'SIGSTOP');
    await pause(TTL_MS / 3);
    scene.bench.group.signal('sidecar-1', 'SIGCONT');
    await pause(TTL_MS);
    expect(await api.isHeld(held)).toBe(true);
    expect(await other.tokenOf('short')).toBe(held.token);
    expect(app.codes).toEqual([]);
    expect((await api.release(held)).status).toBe(200);
    expect(Number((await waiting).body.token)).toBeGreaterThan(held.token);
    app.end();
    waiter.app.end();
    await scene.expectIntact();
  }, 60_000);

  test('stands still for more than the TTL: it reports the loss, and nobody was told to hold meanwhile', async () => {
    const [api, other] = apis as [LockApi, LockApi];
    const { app, session } = await App.open(api);
    const events = await api.stream(session);
    const held = await api.lock('long', { session_id: session, wait_ms: 5_000 });
    const waiter = await App.open(other);
    await pause(1_500);
    const toldBefore = app.deadlines.at(-1) as number;
    scene.bench.group.signal('sidecar-1', 'SIGSTOP');
    const stoppedMs = performance.now();
    const next = await other.lock('long', { session_id: waiter.session, wait_ms: 30_000 });
    const grantedMs = performance.now();
    console.log(
      `sidecar still: its lock was granted to the next one ${Math.round(grantedMs - stoppedMs)} ms later`,
    );
    expect(next.token).toBeGreaterThan(held.token);
    // What the application believed had ended before, by its own clock.
    expect(toldBefore).toBeLessThan(grantedMs);
    expect(toldBefore - stoppedMs).toBeLessThan(BELIEF_MS + 1);
    await pause(500);
    const [codes, deadlines] = [app.codes.length, app.deadlines.length];
    scene.bench.group.signal('sidecar-1', 'SIGCONT');
    // The very first answers after it: a held that is true, or a deadline in the future, would be a lie.
    expect(await api.isHeld(held)).toBe(false);
    await expect.poll(() => app.codes.length, { timeout: 5_000 }).toBeGreaterThan(codes);
    expect(app.codes.every((code) => code === 'SESSION_EXPIRED')).toBe(true);
    expect(app.deadlines.slice(deadlines).filter((deadline) => deadline > grantedMs)).toEqual([]);
    expect(await events.has('lost')).toMatchObject({ token: held.token });
    expect(events.count('restored')).toBe(0);
    app.end();
    waiter.app.end();
    events.close();
    await scene.expectIntact();
  }, 60_000);
});
