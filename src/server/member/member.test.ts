/** Three members of one group on virtual time, with real sidecars on them (rules S4, S5, S7, S8). */
import { describe, expect, test } from 'vitest';
import { sidecarOn } from '../../../test/support/virtual/group-sidecar.ts';
import { VirtualGroup, type VirtualServer } from '../../../test/support/virtual/virtual-group.ts';
import type { ServerFrame } from '../../api/wire.ts';
import type { Sidecar } from '../../sidecar/sidecar.ts';

const IDENTITY = { account: 'dev/developer', podUid: '' };

const others = (group: VirtualGroup, server: VirtualServer): VirtualServer[] =>
  group.servers.filter((other) => other !== server);

function tookOver(group: VirtualGroup, leader: VirtualServer): number | undefined {
  expect(group.servers.flatMap(({ halted }) => halted)).toEqual([]);
  return leader.member.leader?.position.epoch;
}

test('one leads, the others follow; each front end passes on to the leader', async () => {
  const group = new VirtualGroup();
  const leader = await group.led();
  await group.runtime.pass(1_000);
  const roles = await group.runtime.until(
    Promise.all(group.servers.map(({ member }) => member.status())),
    1_000,
  );
  expect(roles.filter(({ role }) => role === 'following')).toHaveLength(2);
  expect(roles.every(({ isOnLeader, lag }) => isOnLeader && lag <= 1)).toBe(true);
  expect(tookOver(group, leader)).toBe(1);
  for (const at of [0, 1, 2]) {
    const { open, acquire } = sidecarOn(group, at);
    const { sessionId } = await group.runtime.until(open(), 1_000);
    const granted = await group.runtime.until(acquire(sessionId, `lock-${at}`, 0), 2_000);
    expect(granted.token).toBeGreaterThan(0);
  }
});

test('a leader that is gone is replaced within a second, and clients elsewhere keep stream, session, grant and place', async () => {
  const group = new VirtualGroup();
  const dead = await group.led();
  await group.runtime.pass(1_000);
  const at = group.servers.findIndex((server) => server !== dead);
  const { sidecar, open, acquire, connects } = sidecarOn(group, at);
  const holder = await group.runtime.until(open(), 1_000);
  const waiter = await group.runtime.until(open(), 1_000);
  const held = await group.runtime.until(acquire(holder.sessionId, 'a', 0), 2_000);
  const waiting = acquire(waiter.sessionId, 'a', 60_000);
  await group.runtime.pass(1_500);
  group.kill(dead);
  const killedMs = group.runtime.nowMs;
  const leader = await group.led([dead]);
  expect(group.runtime.nowMs - killedMs).toBeLessThan(1_000);
  expect(tookOver(group, leader)).toBe(2);
  for (let second = 0; second < 20; second++) {
    await group.runtime.pass(1_000);
    await Promise.all([holder, waiter].map(({ sessionId }) => sidecar.keepaliveSession(sessionId)));
  }
  expect(connects()).toBe(1);
  expect(sidecar.held('n/a', held.token).held).toBe(true);
  const releasing = sidecar.release('n/a', { sessionId: holder.sessionId, token: held.token });
  await group.runtime.until(releasing, 2_000);
  expect((await group.runtime.until(waiting, 2_000)).token).toBeGreaterThan(held.token);
});

test('an orderly stop hands over at once', async () => {
  const group = new VirtualGroup();
  const leaving = await group.led();
  await group.runtime.pass(1_000);
  const from = group.runtime.nowMs;
  const stopping = leaving.member.stop();
  const leader = await group.led([leaving]);
  expect(group.runtime.nowMs - from).toBeLessThan(1_000);
  expect(tookOver(group, leader)).toBe(2);
  await group.runtime.until(stopping, 10_000);
});

test('whenever it is stopped, nothing of it runs on', async () => {
  for (let afterMs = 0; afterMs < 20; afterMs++) {
    const group = new VirtualGroup();
    await group.runtime.pass(afterMs);
    await group.runtime.until(Promise.all(group.servers.map(({ member }) => member.stop())), 60_000);
    await group.runtime.pass(10_000);
    const { steps } = group.runtime;
    await group.runtime.pass(10_000);
    // The one that ends the wait.
    expect(group.runtime.steps - steps, `stopped after ${afterMs} ms`).toBe(1);
  }
});

test('nor when it is stopped while an operator has it hand over', async () => {
  const group = new VirtualGroup();
  const leader = await group.led();
  await group.runtime.pass(500);
  void leader.member.handOver('b').catch(() => undefined);
  await group.runtime.until(Promise.all(group.servers.map(({ member }) => member.stop())), 60_000);
  await group.runtime.pass(10_000);
  const { steps } = group.runtime;
  await group.runtime.pass(10_000);
  expect(group.runtime.steps - steps).toBe(1);
});

test('a leader that is deposed follows again, and can lead again', async () => {
  const group = new VirtualGroup();
  const first = await group.led();
  await group.runtime.pass(500);
  group.store.depose();
  const second = await group.led([first]).catch(() => first);
  await group.runtime.pass(3_000);
  const status = await group.runtime.until(first.member.status(), 1_000);
  expect(status.role).toBe(first === second ? 'leading' : 'following');
  expect(status.position.epoch).toBe(2);
  for (const server of others(group, first)) await group.runtime.until(server.member.stop(), 10_000);
  const again = await group.led();
  expect(again.name).toBe(first.name);
  expect(tookOver(group, again)).toBeGreaterThan(2);
});

describe('a front end that is cut off', () => {
  /** What a client on the one that is cut off hears in three seconds. */
  async function heard(
    hasSession: boolean,
    cut: (group: VirtualGroup, server: VirtualServer) => void,
  ): Promise<ServerFrame[]> {
    const group = new VirtualGroup();
    const leader = await group.led();
    if (hasSession) {
      const { open, acquire } = sidecarOn(group, group.servers.indexOf(leader));
      const { sessionId } = await group.runtime.until(open(), 1_000);
      await group.runtime.until(acquire(sessionId, 'a', 0), 2_000);
    }
    await group.runtime.pass(1_000);
    const [server] = others(group, leader) as [VirtualServer];
    const frames: ServerFrame[] = [];
    server.member.frontEnd.connect(IDENTITY, {
      onFrame: (frame) => void frames.push(frame),
      onClose: () => undefined,
    });
    cut(group, server);
    await group.runtime.pass(3_000);
    expect(group.leader).toBe(leader);
    return frames;
  }

  test.each([
    ['with sessions', true],
    ['without any', false],
  ])(
    'from the leader alone, %s: it sees that somebody leads, and does not say otherwise (rule S8)',
    async (_, has) => {
      const frames = await heard(has, (group, server) => group.cut(server));
      expect(frames.filter(({ leading }) => !leading)).toEqual([]);
    },
  );

  test('from leader and log: it knows nothing, and says nothing for long', async () => {
    const frames = await heard(true, (group, server) => group.kill(server));
    expect(frames.filter(({ leading }) => !leading).length).toBeLessThanOrEqual(2);
  });
});

test('replicas that hear nothing of each other do not depose each other without end (rule S7)', async () => {
  // So impatient that the usual pause between two entries makes them suspicious.
  const group = new VirtualGroup({ silenceMs: 5 });
  await group.led();
  await group.runtime.pass(1_000);
  const { open, acquire } = sidecarOn(group, 0);
  const { sessionId } = await group.runtime.until(open(), 1_000);
  await group.runtime.until(acquire(sessionId, 'held', 0), 2_000);
  for (const server of group.servers) group.cut(server);
  await group.runtime.pass(120_000);
  const { epoch } = group.store.leader() ?? { epoch: 0 };
  expect(epoch).toBeGreaterThan(1);
  expect(epoch).toBeLessThanOrEqual(8);
  expect(group.servers.flatMap(({ halted }) => halted)).toEqual([]);
});

test('a leader that no other replica can reach keeps the sessions of all: their clients come to it (rule S8)', async () => {
  const group = new VirtualGroup();
  const leader = await group.led();
  await group.runtime.pass(1_000);
  const sidecars = others(group, leader).map((server) => sidecarOn(group, group.servers.indexOf(server)));
  const held: { name: string; sessionId: string; token: number; sidecar: Sidecar }[] = [];
  for (const [at, { open, acquire, sidecar }] of sidecars.entries()) {
    const { sessionId } = await group.runtime.until(open(), 1_000);
    const { token } = await group.runtime.until(acquire(sessionId, `lock-${at}`, 0), 2_000);
    held.push({ name: `n/lock-${at}`, sessionId, token, sidecar });
  }
  group.cut(leader);
  for (let second = 0; second < 40; second++) {
    await group.runtime.pass(1_000);
    await Promise.all(held.map(({ sidecar, sessionId }) => sidecar.keepaliveSession(sessionId)));
  }
  expect(tookOver(group, leader)).toBe(1);
  for (const { sidecar, name, token } of held) expect(sidecar.held(name, token).held).toBe(true);
});
