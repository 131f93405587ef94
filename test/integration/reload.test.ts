/** `leasehold dev` as a program: what it prints, how it takes changed manifests, and what it refuses. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';
import { leasehold } from '../support/cli.ts';
import type { DevProcess } from '../support/dev/dev-process.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';

const TTL_MS = 5_000;
const SHORT = { ttl_s: TTL_MS / 1_000 };
const RELOADED_MS_MAX = 10_000;
const EXIT_USAGE = 125;
const EXIT_UNAVAILABLE = 123;
const TIMEOUT_MS = 60_000;
const shell = promisify(execFile);

/** Waits for the report of the next reload after `action`. */
async function reloaded(dev: DevProcess, action: () => void): Promise<string> {
  const before = dev.stdout.length;
  action();
  await dev.until(() => dev.stdout.slice(before).includes('Manifests reloaded'), RELOADED_MS_MAX);
  return dev.stdout.slice(before).trim();
}

describe.concurrent('manifests that change under a running dev', () => {
  test('a new namespace is served, changed limits bind new grants only, a removed one takes its grants along', {
    timeout: TIMEOUT_MS,
  }, async ({ expect, onTestFinished }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace({ name: 'stays' }, { name: 'goes' });
    const dev = await own.start(workspace);
    const [stays, goes, comes] = [own.api(dev, 'stays'), own.api(dev, 'goes'), own.api(dev, 'comes')];
    const session = await stays.open();
    const keeping = stays.keepAlive(session);
    const [first, second] = [
      await stays.lock('first', { session_id: session }),
      await stays.lock('second', { session_id: session }),
    ];
    const doomed = await goes.open(SHORT);
    const stream = await goes.stream(doomed);
    const lost = await goes.lock('x', { session_id: doomed });
    const waiting = goes.acquire('x', { session_id: await goes.open(SHORT), wait_ms: 60_000 });
    await goes.waiting('x', 1);
    expect((await comes.acquire('x', { session_id: session })).body).toMatchObject({
      code: 'NAMESPACE_NOT_FOUND',
    });

    const added = await reloaded(dev, () => workspace.write({ name: 'comes' }));
    expect(added).toBe('Manifests reloaded: added [comes], changed [], removed [].');
    const new1 = await comes.lock('x', { session_id: session });
    expect(new1.token).toBeGreaterThan(0);

    const limits = { heldLocks: 2, perClient: { locks: 2, operationsPerSecond: 1_000 } };
    const changed = await reloaded(dev, () =>
      workspace.write({ name: 'stays', lease: { ttl: '8s' }, limits }),
    );
    expect(changed).toBe('Manifests reloaded: added [], changed [stays], removed [].');
    expect((await stays.renew(first)).body).toMatchObject({ token: first.token, lease_ttl_ms: 30_000 });
    expect(await stays.tokenOf('second')).toBe(second.token);
    expect((await stays.acquire('third', { session_id: session })).body.code).toBe('QUOTA_EXCEEDED');
    await stays.release(second);
    const fresh = await stays.acquire('third', { client: 'fresh' });
    expect(fresh).toMatchObject({ status: 200, body: { lease_ttl_ms: 8_000 } });

    const removed = await reloaded(dev, () => workspace.removeManifest('goes'));
    expect(removed).toBe('Manifests reloaded: added [], changed [], removed [goes].');
    expect(await stream.has('lost')).toMatchObject({ name: 'goes/x', token: lost.token });
    expect((await waiting).status).toBeGreaterThanOrEqual(400);
    expect((await goes.acquire('x', { session_id: session })).body.code).toBe('NAMESPACE_NOT_FOUND');
    expect(await stays.isHeld(first)).toBe(true);
    const { stdout: history } = await leasehold(['log', 'dump', workspace.data, '-n', 'goes', '--events']);
    expect(history).toMatch(/revoking .*cause=namespaceDeleted/);

    // It comes back with what it had written: nobody holds longer than the revoke allowed, and tokens grow.
    await reloaded(dev, () => workspace.write({ name: 'goes' }));
    const again = await goes.lock('x', { session_id: session, wait_ms: 3 * TTL_MS });
    expect(again.token).toBeGreaterThan(lost.token);
    keeping.stop();
    expect(keeping.refused).toEqual([]);
    expect((await dev.stop()).code).toBe(0);
    expect(dev.stderr).toBe('');
  });

  test('an alias that moves to another Kubernetes namespace starts from nothing there', {
    timeout: TIMEOUT_MS,
  }, async ({ expect, onTestFinished }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace({ name: 'moves', namespace: 'old' });
    const dev = await own.start(workspace);
    const api = own.api(dev, 'moves');
    const session = await api.open();
    const stream = await api.stream(session);
    const held = await api.lock('x', { session_id: session });
    const report = await reloaded(dev, () => workspace.write({ name: 'moves', namespace: 'new' }));
    expect(report).toBe('Manifests reloaded: added [moves], changed [], removed [moves].');
    expect(await stream.has('lost')).toMatchObject({ name: 'moves/x', token: held.token });
    expect(await api.isHeld(held)).toBe(false);
    expect(await api.get('x')).toMatchObject({ holder: null, waiters: 0 });
    const next = await api.lock('x', { session_id: await api.open() });
    expect(next.token).toBeGreaterThan(0);
    expect(await dev.stop()).toEqual({ code: 0, signal: null });
    expect(dev.stderr).toBe('');
  });

  test('an invalid change keeps what was in force, and says where and what is wrong', {
    timeout: TIMEOUT_MS,
  }, async ({ expect, onTestFinished }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace({ name: 'kept' });
    const dev = await own.start(workspace);
    const api = own.api(dev, 'kept');
    const session = await api.open();
    const keeping = api.keepAlive(session);
    const held = await api.lock('x', { session_id: session });
    const broken = [
      ['a wrong value', { lease: { ttl: '15 parsecs' } }, 'spec.lease.ttl'],
      ['a value out of bounds', { queue: { maxWaiters: 10_000_000 } }, 'spec.queue.maxWaiters'],
      ['an unknown field', { queue: { maxWaitres: 7 } }, 'maxWaitres'],
    ] as const;
    for (const [what, differs, where] of broken) {
      const before = dev.stderr.length;
      workspace.write({ name: 'kept', ...differs });
      await dev.until(() => dev.stderr.slice(before).includes('stays in force'), RELOADED_MS_MAX);
      expect(dev.stderr.slice(before), what).toMatch(/kept\.yaml:[0-9]+:[0-9]+ /);
      expect(dev.stderr.slice(before), what).toContain(where);
      expect(await api.isHeld(held), what).toBe(true);
    }
    workspace.writeText('kept.yaml', '{ half: [saved');
    await dev.until(() => dev.stderr.split('stays in force').length === broken.length + 2, RELOADED_MS_MAX);
    // An alias twice would be two namespaces under one name.
    workspace.write({ name: 'kept' });
    workspace.writeText('twice.yaml', workspace.textOf({ name: 'kept', namespace: 'other' }));
    await dev.until(() => dev.stderr.split('stays in force').length === broken.length + 3, RELOADED_MS_MAX);
    expect(dev.stdout).not.toContain('Manifests reloaded');
    expect((await api.renew(held)).body).toMatchObject({ token: held.token });

    workspace.removeManifest('twice');
    const report = await reloaded(dev, () => workspace.write({ name: 'kept', lease: { ttl: '6s' } }));
    expect(report).toBe('Manifests reloaded: added [], changed [kept], removed [].');
    expect(await api.isHeld(held)).toBe(true);
    keeping.stop();
    expect(keeping.refused).toEqual([]);
    expect(await dev.stop()).toEqual({ code: 0, signal: null });
  });
});

describe.concurrent('starting and stopping', () => {
  test('manifests that are not valid: all that is wrong at once, and nothing is served', async ({
    expect,
    onTestFinished,
  }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace(
      { name: 'a', lease: { ttl: '1s' } },
      { name: 'b', queue: { maxWait: '2d' } },
    );
    const dev = own.spawn(workspace);
    expect((await dev.exited).code).toBe(EXIT_USAGE);
    expect(dev.stderr).toMatch(/a\.yaml:[0-9]+:[0-9]+ spec\.lease\.ttl/);
    expect(dev.stderr).toMatch(/b\.yaml:[0-9]+:[0-9]+ spec\.queue\.maxWait/);
    expect(dev.stderr).toContain('2 problem(s)');
    expect(dev.stdout).toBe('');
  });

  test('a second dev on the same data is refused and names the first; the first goes on', async ({
    expect,
    onTestFinished,
  }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace({ name: 'mine' });
    const first = await own.start(workspace);
    const api = own.api(first, 'mine');
    const held = await api.lock('x', { session_id: await api.open() });
    const second = own.spawn(workspace);
    expect((await second.exited).code).toBe(EXIT_UNAVAILABLE);
    expect(second.stderr).toContain(`process ${first.pid}`);
    expect(second.stderr).toContain(workspace.data);
    expect(second.stderr).not.toMatch(/^\s+at /m);
    expect((await api.renew(held)).status).toBe(200);
    expect(await first.stop()).toEqual({ code: 0, signal: null });
  });

  test('a port that is taken: which, and what to do; nothing stays behind', async ({
    expect,
    onTestFinished,
  }) => {
    const own = new OwnDev({ onTestFinished });
    const first = await own.start(own.workspace({ name: 'first' }));
    const workspace = own.workspace({ name: 'second' });
    const second = own.spawn(workspace, first.port);
    expect((await second.exited).code).toBe(EXIT_UNAVAILABLE);
    expect(second.stderr).toContain(String(first.port));
    expect(second.stderr).toContain('--port');
    expect(second.stderr).not.toMatch(/^\s+at /m);
    // Its data is free again.
    const third = await own.start(workspace);
    expect(await third.stop()).toEqual({ code: 0, signal: null });
  });

  test('SIGTERM leaves sessions and grants to the next start, waiters are told to come again', async ({
    expect,
    onTestFinished,
  }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace({ name: 'left' });
    const first = await own.start(workspace);
    const api = own.api(first, 'left');
    const [calling, streaming] = [
      await api.open(),
      await api.open({ keepalive: 'stream', max_hold_ms: 3_600_000 }),
    ];
    const stream = await api.stream(streaming);
    const held = [
      await api.lock('calling', { session_id: calling }),
      await api.lock('streaming', { session_id: streaming }),
    ];
    const waiting = api.acquire('streaming', { session_id: calling, wait_ms: 60_000 }).catch(() => null);
    await api.waiting('streaming', 1);
    const stoppedAt = performance.now();
    expect(await first.stop()).toEqual({ code: 0, signal: null });
    expect(performance.now() - stoppedAt).toBeLessThan(5_000);
    await stream.ended;
    expect(stream.lines.filter(({ event }) => event === 'lost' || event === 'session_lost')).toEqual([]);
    const told = await waiting;
    if (told !== null) expect(told.body.code).toBe('UNAVAILABLE');
    expect(first.stderr).toBe('');

    const second = await own.start(workspace);
    expect(await second.startMessage()).toContain('2 held');
    const next = own.api(second, 'left');
    const reopened = await next.stream(streaming);
    for (const grant of held) {
      expect((await next.renew(grant)).body).toMatchObject({ token: grant.token });
      expect(await next.isHeld(grant)).toBe(true);
      expect(await next.tokenOf(grant.name)).toBe(grant.token);
    }
    expect((await next.get('streaming')).waiters).toBe(0);
    reopened.close();
    expect(await eventually(async () => (await next.tokenOf('streaming')) === null)).toBeLessThan(3_000);
    expect(await second.stop()).toEqual({ code: 0, signal: null });
  });

  test('the start message names the address, every namespace, and three commands that work as they stand', async ({
    expect,
    onTestFinished,
  }) => {
    const own = new OwnDev({ onTestFinished });
    const workspace = own.workspace(
      { name: 'payouts', namespace: 'payments' },
      { name: 'jobs', namespace: 'batch' },
    );
    const dev = await own.start(workspace);
    const message = await dev.startMessage();
    expect(message).toContain(`http://127.0.0.1:${dev.port}`);
    expect(message).toContain('payouts   (LockNamespace payments/payouts:');
    expect(message).toContain('jobs      (LockNamespace batch/jobs:');
    expect(message).toContain(workspace.data);
    const commands = message.split('\n').filter((line) => line.startsWith('  curl '));
    expect(commands).toHaveLength(3);
    const outputs: unknown[] = [];
    for (const command of commands) outputs.push(JSON.parse((await shell('sh', ['-c', command])).stdout));
    const name = 'jobs/my-lock';
    expect(outputs[0]).toMatchObject({ acquired: true, lease_ttl_ms: 60_000 });
    const { token } = outputs[0] as { token: number };
    expect(outputs[1]).toMatchObject({ name, token, holder: { client: 'me' } });
    expect(outputs[2]).toMatchObject({ locks: [{ name, token }] });
    expect(existsSync(workspace.data)).toBe(true);
    expect(await dev.stop()).toEqual({ code: 0, signal: null });
  });
});
