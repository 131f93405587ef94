/** What an administrator is told by a replica that has been deposed and does not know it yet. */
import { expect, test } from 'vitest';
import { VirtualGroup } from '../../../test/support/virtual/virtual-group.ts';
import { GroupReplica } from './group-replica.ts';

test('a hand-over by a leader that was cut off meanwhile names the one that has taken over long ago', async () => {
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
  const handedOver = await runtime.until(replica.handOver(''), 10_000);
  expect(handedOver.serverId).toBe(next.name);
});
