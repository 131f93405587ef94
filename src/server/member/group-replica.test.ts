/** What an administrator is told by a replica that has been deposed and does not know it yet. */
import { expect, test } from 'vitest';
import { VirtualGroup } from '../../../test/support/virtual/virtual-group.ts';
import { NotLeadingError } from '../leader/not-leading.ts';
import { GroupReplica } from './group-replica.ts';

/** It was cut off while another has taken over, and is about to learn of it. */
async function deposed() {
  const group = new VirtualGroup();
  const { runtime } = group;
  const old = await group.led();
  await runtime.pass(1_000);
  group.kill(old);
  const next = await group.led([old]);
  await runtime.pass(1_000);
  expect(old.member.leader?.isLeading).toBe(true);
  group.revive(old);
  const { member, log, name: serverId } = old;
  const replica = new GroupReplica({ member, log, runtime, serverId });
  return { runtime, replica, next };
}

test('a hand-over by it names the one that has taken over long ago', async () => {
  const { runtime, replica, next } = await deposed();
  const handedOver = await runtime.until(replica.handOver(''), 10_000);
  expect(handedOver.serverId).toBe(next.name);
});

test('a snapshot is asked of its successor, not waited for in vain', async () => {
  const { runtime, replica } = await deposed();
  const snapshot = expect(replica.snapshot()).rejects.toThrow(NotLeadingError);
  await runtime.until(snapshot, 10_000);
});
