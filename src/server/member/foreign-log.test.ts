/** A replica whose manifest is of another LockNamespace than its log: two groups on one etcd under one prefix, or a file of another group. */
import { expect, test } from 'vitest';
import { namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { NamespaceConfig } from '../../api/config.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { Member } from './member.ts';

const OWN = namespaceConfig({ namespace: 'payments', name: 'payouts' });
const OTHER = namespaceConfig({ namespace: 'analytics', name: 'exports' });

function start(runtime: VirtualRuntime, store: MemoryStore, config: NamespaceConfig) {
  const halted: string[] = [];
  const { timers, random } = runtime;
  const member = Member.start({
    runtime,
    log: new MemoryLog(store, { timers, random, latencyMs: () => 2 }),
    serverId: config.name,
    config,
    replicas: 1,
    suspicion: { silenceMs: 400, everyMs: 30_000 },
    dial: () => null,
    onHalted: (error) => void halted.push(String(error)),
  });
  return { member, halted };
}

test('changes nothing, serves nothing and says whose log it is', async () => {
  const runtime = new VirtualRuntime();
  const store = new MemoryStore('l');
  const own = start(runtime, store, OWN);
  await runtime.pass(2_000);
  expect(own.member.state?.config).toEqual(OWN);
  await runtime.until(own.member.stop(), 10_000);
  const other = start(runtime, store, OTHER);
  await runtime.pass(5_000);
  expect(other.halted).toEqual([
    expect.stringMatching(
      /log is that of .*payments\/payouts.*manifest here is of analytics\/exports.*prefix/,
    ),
  ]);
  expect(other.member.leader).toBeNull();
  await runtime.until(other.member.stop(), 10_000);
  const again = start(runtime, store, { ...OWN, sessions: 7 });
  await runtime.pass(2_000);
  expect(again.halted).toEqual([]);
  expect(again.member.state).toMatchObject({ configVersion: 2, config: { name: 'payouts', sessions: 7 } });
  await runtime.until(again.member.stop(), 10_000);
});

test('nor when both began on an empty log', async () => {
  const runtime = new VirtualRuntime();
  const store = new MemoryStore('l');
  const both = [start(runtime, store, OWN), start(runtime, store, OTHER)];
  await runtime.pass(20_000);
  expect(both.filter(({ halted }) => halted.length > 0)).toHaveLength(1);
  const serving = both.find(({ halted }) => halted.length === 0);
  expect(serving?.member.state?.configVersion).toBe(1);
  await runtime.until(Promise.all(both.map(({ member }) => member.stop())), 10_000);
});
