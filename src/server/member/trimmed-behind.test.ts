/** A standby that was cut off while the log was trimmed past it, and leads afterwards (rule L4). */
import { expect, test } from 'vitest';
import { namespaceConfig, openCommand } from '../../../test/support/core.ts';
import { VirtualGroup } from '../../../test/support/virtual/virtual-group.ts';
import { TrimmedError } from '../../log/port.ts';

const DUE_BYTES = 2_000;

test('it knows the configuration in force, though it never saw it come, and does not bring its own old one back', async () => {
  const group = new VirtualGroup({ snapshotDueBytes: DUE_BYTES });
  const { runtime, store } = group;
  const isKept = (index: number): boolean => {
    try {
      return store.entryHash(index) !== null;
    } catch (error) {
      if (error instanceof TrimmedError) return false;
      throw error;
    }
  };
  const leader = await group.led();
  await runtime.pass(1_000);
  const [behind, other] = group.servers.filter((server) => server !== leader);
  const missed = store.head().index;
  group.kill(behind!);
  const changed = namespaceConfig({ maxWaitersPerName: 7 });
  await runtime.until(leader.member.reconfigure(changed), 2_000);
  const { index } = store.head();
  for (let round = 0; isKept(index) && round < 200; round++) {
    await runtime.until(leader.member.leader!.submit([openCommand()]), 2_000);
    await runtime.pass(100);
  }
  expect(isKept(index)).toBe(false);
  expect(index).toBeGreaterThan(missed);
  group.revive(behind!);
  await runtime.pass(3_000);
  group.kill(leader);
  group.kill(other!);
  expect((await group.led([leader, other!])).name).toBe(behind!.name);
  await runtime.pass(1_000);
  expect(behind!.member.leader?.state.config).toEqual(changed);
  expect(runtime.logged).toContain('the manifest of this server is behind the configuration in force');
});
