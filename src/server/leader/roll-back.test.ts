/** Groups whose log is set back to an older copy, on virtual time (rule S10): by whom it is noticed, what stops, and the way out. */
import { describe, expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../../test/support/virtual/pod.ts';
import { VirtualGroup, type VirtualServer } from '../../../test/support/virtual/virtual-group.ts';
import { HaltedError } from '../../log/port.ts';
import { createMetrics } from '../../platform/prometheus.ts';
import { Sidecar } from '../../sidecar/sidecar.ts';
import { MemoryStateStore } from '../../sidecar/state-store.ts';

const IDENTITY = { account: 'dev/developer', podUid: '' };

/** A sidecar on one front end of a group, with the state of an earlier life. */
function sidecarOn(group: VirtualGroup, at: number, store = new MemoryStateStore()) {
  const sidecar = new Sidecar({ runtime: group.runtime, store });
  sidecar.addNamespace({
    alias: 'n',
    connect: (handler) => {
      const server = group.servers[at] as VirtualServer;
      return server.member.frontEnd.connect(IDENTITY, handler);
    },
    metrics: createMetrics().sidecar('n'),
    defaults: () => ({ ttlMs: TTL_MS, maxHoldMs: 3_600_000 }),
  });
  sidecar.restore();
  const acquire = (name: string) =>
    sidecar.acquire(`n/${name}`, {
      mode: 'exclusive',
      permits: 1,
      reentrant: false,
      waitMs: 0,
      purpose: '',
      hangUp: new AbortController().signal,
    });
  return { sidecar, store, acquire };
}

const rolesOf = async (group: VirtualGroup): Promise<readonly string[]> => {
  const all = Promise.all(group.servers.map(({ member }) => member.status()));
  return (await group.runtime.until(all, 1_000)).map(({ role }) => role);
};

describe('one replica', () => {
  test('that is set back halts when a client with a newer mark comes back, and stays halted', async () => {
    const pod = await Pod.start();
    const copy = pod.jobs.store.copy();
    const { token, keeping } = await pod.holding('a');
    await pod.runtime.pass(10_000);
    pod.jobs.kill();
    pod.jobs.store.restore(copy);
    await pod.jobs.start();
    await pod.runtime.pass(2_000);
    expect(pod.jobs.stopped).toEqual(['halted']);
    expect(pod.jobs.store.standing().halted).toMatchObject({ seenBy: 'client', found: '' });
    // The grant runs to its own deadline and is lost by time.
    expect(pod.held('a', token).held).toBe(true);
    keeping.stop();
    await pod.runtime.pass(TTL_MS);
    expect(pod.held('a', token).held).toBe(false);
    await expect(pod.jobs.start()).rejects.toThrow(HaltedError);
  });

  test('is served on while no client with a mark comes: nothing proves it', async () => {
    const pod = await Pod.start();
    const copy = pod.jobs.store.copy();
    await pod.holding('a');
    await pod.runtime.pass(5_000);
    pod.sidecar.stop();
    pod.jobs.kill();
    pod.jobs.store.restore(copy);
    await pod.jobs.start();
    await pod.runtime.pass(5_000);
    expect(pod.jobs.stopped).toEqual([]);
    // The restart of the sidecar brings its mark back, though it has no stream and no session of its own to go on with.
    await pod.restart();
    await pod.runtime.pass(1_000);
    expect(pod.jobs.stopped).toEqual(['halted']);
  });

  test('that has gone on past the mark is found out by the entry there', async () => {
    const pod = await Pod.start();
    const copy = pod.jobs.store.copy();
    const { sessionId } = await pod.holding('a');
    await pod.runtime.pass(5_000);
    expect(sessionId).not.toBe('');
    pod.sidecar.stop();
    pod.jobs.kill();
    pod.jobs.store.restore(copy);
    await pod.jobs.start();
    const kept = pod.store;
    pod.store = new MemoryStateStore();
    await pod.restart();
    await pod.holding('b');
    await pod.runtime.pass(60_000);
    expect(pod.jobs.stopped).toEqual([]);
    pod.store = kept;
    await pod.restart();
    await pod.runtime.pass(1_000);
    expect(pod.jobs.stopped).toEqual(['halted']);
    expect(pod.jobs.store.standing().halted?.found).toMatch(/^[0-9a-f]{64}$/);
  });

  test('case G12: of a new lineage ends all sessions and grants nothing for as long as old grants may be believed in, then with higher tokens', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a');
    await pod.runtime.pass(5_000);
    pod.jobs.kill();
    const tokenFloor = token + 2 ** 46;
    pod.jobs.store.beginLineage('lineage-of-jobs', { lineage: 'next', tokenFloor, quietMs: 60_000 });
    await pod.jobs.start();
    await pod.runtime.pass(1_000);
    expect((await pod.refusal(pod.sidecar.keepaliveSession(sessionId))).code).toBe('SESSION_EXPIRED');
    const early = await pod.refusal(pod.acquire('a'));
    expect(early.code).toBe('UNAVAILABLE');
    expect(early.message).toContain('a new lineage has begun');
    // A change of leader in the middle of it changes nothing.
    await pod.runtime.pass(30_000);
    pod.jobs.kill();
    await pod.jobs.start();
    await pod.runtime.pass(27_000);
    expect((await pod.refusal(pod.acquire('a'))).code).toBe('UNAVAILABLE');
    await pod.runtime.pass(5_000);
    expect((await pod.acquire('a')).token).toBeGreaterThan(tokenFloor);
    expect(pod.jobs.stopped).toEqual([]);
  });

  test('of a new lineage does not take a session of the old one for one of its own', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open({ keepalive: 'stream', maxHoldMs: 60_000 });
    pod.stream(sessionId);
    await pod.acquire('a', { sessionId });
    await pod.runtime.pass(3_000);
    pod.sidecar.stop();
    pod.jobs.kill();
    pod.jobs.store.beginLineage('lineage-of-jobs', { lineage: 'next', tokenFloor: 0, quietMs: 0 });
    await pod.jobs.start();
    const kept = pod.store;
    pod.store = new MemoryStateStore();
    await pod.restart();
    // The first session of this lineage has the number of the first one of the other.
    const { token } = await pod.holding('a');
    pod.store = kept;
    const other = pod.newSidecar();
    const { line, config } = pod.jobs;
    const metrics = createMetrics().sidecar('jobs');
    other.addNamespace({ alias: 'jobs', connect: line.connect, metrics, defaults: () => config });
    other.restore();
    // Closing needs no attach, and so no secret.
    await pod.runtime.until(other.closeSession(sessionId), 10_000);
    await pod.runtime.pass(1_000);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
  });
});

describe('a group', () => {
  test('whose log is set back under it halts by what its replicas saw, and begins anew with a new lineage', async () => {
    const group = new VirtualGroup();
    await group.led();
    const { acquire } = sidecarOn(group, 0);
    const copy = group.store.copy();
    const { token } = await group.runtime.until(acquire('a'), 5_000);
    await group.runtime.pass(1_000);
    group.store.restore(copy);
    await group.runtime.pass(5_000);
    expect(await rolesOf(group)).toEqual(['halted', 'halted', 'halted']);
    expect(group.store.standing().halted).toMatchObject({ seenBy: 'replica' });
    const refused = await group.runtime.until(
      acquire('b').then(
        () => null,
        (error: Error & { code: string }) => error,
      ),
      10_000,
    );
    expect(refused?.code).toBe('UNAVAILABLE');
    expect(refused?.message).toContain('leasehold group new-lineage');

    const restarted = await group.restart('b');
    await group.runtime.pass(3_000);
    expect((await group.runtime.until(restarted.member.status(), 100)).role).toBe('halted');

    const floor = token + 2 ** 46;
    group.store.beginLineage('l', { lineage: 'm', tokenFloor: floor, quietMs: 20_000 });
    await group.runtime.pass(2_000);
    expect(group.servers.map(({ replaced }) => replaced)).toEqual([1, 1, 1]);
    for (const name of ['a', 'b', 'c']) await group.restart(name);
    await group.led();
    const anew = sidecarOn(group, 1);
    await group.runtime.pass(25_000);
    expect((await group.runtime.until(anew.acquire('a'), 10_000)).token).toBeGreaterThan(floor);
    expect(group.servers.flatMap(({ halted }) => halted)).toEqual([]);
  });

  test('that all restarted on an old copy halts by the first client that comes back', async () => {
    const group = new VirtualGroup();
    await group.led();
    const copy = group.store.copy();
    const { acquire, sidecar, store } = sidecarOn(group, 0);
    await group.runtime.until(acquire('a'), 5_000);
    await group.runtime.pass(2_000);
    sidecar.stop();
    const stopping = group.servers.map(({ member }) => member.stop());
    await group.runtime.until(Promise.all(stopping), 10_000);
    copy.depose();
    group.store.restore(copy);
    for (const name of ['a', 'b', 'c']) await group.restart(name);
    await group.led();
    await group.runtime.pass(5_000);
    expect(await rolesOf(group)).not.toContain('halted');
    sidecarOn(group, 2, store);
    await group.runtime.pass(5_000);
    expect(await rolesOf(group)).toEqual(['halted', 'halted', 'halted']);
    expect(group.store.standing().halted).toMatchObject({ seenBy: 'client' });
  });

  test('a new lineage under a running group is noticed by every replica, also by its leader', async () => {
    const group = new VirtualGroup();
    await group.led();
    await group.runtime.pass(3_000);
    group.store.beginLineage('l', { lineage: 'm', tokenFloor: 0, quietMs: 0 });
    await group.runtime.pass(4_000);
    expect(group.servers.map(({ replaced }) => replaced)).toEqual([1, 1, 1]);
    expect(group.store.head().index).toBe(0);
  });
});
