/**
 * `leasehold run` with real processes on a real `leasehold dev`: its wrapper stopped at each change of state, wrapper and watchdog killed.
 * Two CMDs never run at once as long as wrapper or watchdog runs: CMD writes its token to one file all the time, and the lines of one token
 * must stand together.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';
import { begun, isAlive, linesOf, nextBegun, STUBBORN, tokensInTurn, WORK } from './cli-run/run-process.ts';
import { Scene, stopWhile } from './cli-run/scene.ts';

const TTL_MS = 5_000;
/** Promise 2: a dead holder's lock is free by then. The rest is for a busy machine. */
const FREE_MS_MAX = TTL_MS + 1_000 + 10_000;
const TEST_MS_MAX = 90_000;
const EXIT_LOST = 122;

vi.setConfig({ maxConcurrency: 6, testTimeout: TEST_MS_MAX });

const shared = shareDev({ name: 'jobs', lease: { ttl: '5s' } });
const sceneOf = (context: TestContext): Scene => new Scene(shared, context);

describe.concurrent('the wrapper is stopped past its lease, and goes on', () => {
  test('before it has a session: nothing was held, and it takes its turn', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const session = gateway.hold('POST', '/v1/sessions');
    const run = scene.run('echo "begin $LEASEHOLD_TOKEN" >>"$0"; exit 3', { url: gateway.url });
    await session.answered;
    await stopWhile(run, async () => {
      session.letGo();
      await pause(TTL_MS + 1_500);
    });
    expect(await run.exited).toBe(3);
    expect(tokensInTurn(scene.file)).toHaveLength(1);
  });

  test('while it waits: a grant it could not use starts nothing, and others get the lock', async (context) => {
    const scene = sceneOf(context);
    const holder = await scene.api.lock(scene.name, { client: 'first', ttl_s: 30 });
    const run = scene.run();
    await scene.waiting();
    await stopWhile(run, async () => {
      await scene.api.release(holder);
      await eventually(() => scene.isFree(), FREE_MS_MAX);
    });
    expect(await run.exited).toBe(EXIT_LOST);
    expect(linesOf(scene.file)).toEqual([]);
  });

  test('acquired, but not started: CMD never begins', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const renewed = gateway.hold('POST', '/renew');
    const run = scene.run(WORK, { url: gateway.url });
    await renewed.answered;
    await stopWhile(run, async () => {
      renewed.letGo();
      await scene.takenByOther();
    });
    expect(await run.exited).toBe(EXIT_LOST);
    expect(linesOf(scene.file)).toEqual([]);
  });

  test('CMD at its gate, the watchdog stopped too: it is not let go after the deadline', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const renewed = gateway.hold('POST', '/renew');
    const run = scene.run(WORK, { url: gateway.url });
    await renewed.answered;
    const watchdog = await run.watchdog();
    process.kill(watchdog, 'SIGSTOP');
    renewed.letGo();
    const cmd = await run.cmd();
    await stopWhile(run, async () => {
      await scene.takenByOther();
      process.kill(watchdog, 'SIGCONT');
      await eventually(() => !isAlive(cmd));
    });
    expect(await run.exited).toBe(EXIT_LOST);
    expect(linesOf(scene.file)).toEqual([]);
  });

  test('running: the watchdog ends CMD before the next one begins', async (context) => {
    const scene = sceneOf(context);
    const first = scene.run();
    await begun(scene.file, 1);
    const second = scene.run();
    await scene.waiting();
    await stopWhile(first, () => nextBegun(scene.file));
    expect(await first.exited).toBe(EXIT_LOST);
    second.kill('SIGTERM');
    expect(await second.exited).toBe(143);
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });

  test('terminating a CMD that does not listen: the watchdog ends it before the next one begins', async (context) => {
    const scene = sceneOf(context);
    const first = scene.run(STUBBORN);
    await begun(scene.file, 1);
    const second = scene.run();
    await scene.waiting();
    await scene.break();
    await eventually(() => first.stderr.includes('ending CMD'));
    await stopWhile(first, () => nextBegun(scene.file));
    expect(await first.exited).toBe(EXIT_LOST);
    second.kill('SIGTERM');
    expect(await second.exited).toBe(143);
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });

  test('before it hears of a revoke: the watchdog ends CMD, the next one begins after that', async (context) => {
    const scene = sceneOf(context);
    const first = scene.run(STUBBORN);
    await begun(scene.file, 1);
    const second = scene.run();
    await scene.waiting();
    await stopWhile(first, async () => {
      await scene.break();
      await nextBegun(scene.file);
    });
    expect(await first.exited).toBe(EXIT_LOST);
    second.kill('SIGTERM');
    await second.exited;
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });

  test('releasing: CMD is through, so its code counts', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const script = 'echo "begin $LEASEHOLD_TOKEN" >>"$0"; exit 4';
    const renewed = gateway.hold('POST', '/renew');
    const run = scene.run(script, { url: gateway.url });
    await renewed.answered;
    const closed = gateway.hold('DELETE', '');
    renewed.letGo();
    await closed.answered;
    await stopWhile(run, async () => {
      closed.letGo();
      await pause(TTL_MS + 500);
    });
    expect(await run.exited).toBe(4);
    expect(await scene.isFree()).toBe(true);
  });
});

test.concurrent('wrapper, watchdog and CMD all stopped past the lease: CMD dies within 1 s of resuming, its token is refused', async (context) => {
  const scene = sceneOf(context);
  const run = scene.run(STUBBORN);
  await begun(scene.file, 1);
  const token = await scene.api.tokenOf(scene.name);
  const [watchdog, cmd] = [await run.watchdog(), await run.cmd()];
  const all = [cmd, watchdog, run.pid];
  for (const pid of all) process.kill(pid === cmd ? -pid : pid, 'SIGSTOP');
  const newer = await scene.takenByOther();
  expect(isAlive(cmd)).toBe(true);
  expect(newer).toBeGreaterThan(token ?? Number.POSITIVE_INFINITY);
  for (const pid of all) process.kill(pid === cmd ? -pid : pid, 'SIGCONT');
  expect(await eventually(() => !isAlive(cmd), 1_000)).toBeLessThan(1_000);
  expect(await run.exited).toBe(EXIT_LOST);
  expect(await scene.api.isHeld({ name: scene.name, token: token ?? 0 })).toBe(false);
  const session = await scene.api.open();
  const refused = await scene.api.release({ name: scene.name, session, token: token ?? 0 });
  expect(refused.body).toMatchObject({ code: expect.stringMatching(/STALE_TOKEN|NOT_HELD/) });
});

describe.concurrent('kill -9', () => {
  test('case K09: of the wrapper: CMD is dead at once, the lock is free when its TTL has passed', async (context) => {
    const scene = sceneOf(context);
    const first = scene.run(STUBBORN);
    await begun(scene.file, 1);
    const [watchdog, cmd] = [await first.watchdog(), await first.cmd()];
    const second = scene.run();
    await scene.waiting();
    first.kill('SIGKILL');
    await eventually(() => !isAlive(cmd) && !isAlive(watchdog), 1_000);
    await nextBegun(scene.file, FREE_MS_MAX);
    second.kill('SIGTERM');
    await second.exited;
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });

  test('of the wrapper, with CMD at its gate: CMD is dead as soon as the watchdog runs again', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const renewed = gateway.hold('POST', '/renew');
    const run = scene.run(WORK, { url: gateway.url });
    await renewed.answered;
    const watchdog = await run.watchdog();
    process.kill(watchdog, 'SIGSTOP');
    renewed.letGo();
    const cmd = await run.cmd();
    run.kill('SIGKILL');
    await run.exited;
    process.kill(watchdog, 'SIGCONT');
    await eventually(() => !isAlive(cmd) && !isAlive(watchdog), 2_000);
    expect(tokensInTurn(scene.file).length).toBeLessThanOrEqual(1);
  });

  test('of the watchdog: CMD does not run on without it', async (context) => {
    const scene = sceneOf(context);
    const run = scene.run(STUBBORN);
    await begun(scene.file, 1);
    const cmd = await run.cmd();
    process.kill(await run.watchdog(), 'SIGKILL');
    expect(await run.exited).toBe(EXIT_LOST);
    expect(isAlive(cmd)).toBe(false);
    expect(run.stderr).toContain('the watchdog has died');
    expect(await scene.isFree()).toBe(true);
  });
});
