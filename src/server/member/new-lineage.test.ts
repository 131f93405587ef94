/** The way out of a log of which nothing can be read any more (rule S10). */
import { expect, test } from 'vitest';
import { LeaderBench } from '../../../test/support/virtual/leader-bench.ts';
import { LOCK_DELAY_MS_MAX, TTL_MS_MAX } from '../../api/limits.ts';
import { floorOfBirth } from '../leader/take-over.ts';
import { planLineage } from './new-lineage.ts';

test('no snapshot is whole and the log was trimmed: the next lineage goes by the clock, and waits for the longest lease there can be', async () => {
  const bench = await LeaderBench.start();
  const { log, runtime } = bench;
  const front = bench.frontEnd();
  for (const client of [1, 2]) {
    bench.leader.demandSnapshot();
    await front.open(client);
    await runtime.pass(1_000);
  }
  const snapshots = await log.snapshots();
  expect(snapshots).toHaveLength(2);
  for (const { id } of snapshots) log.corrupt.add(id);
  const plan = await planLineage(log, runtime, null);
  expect(plan.known).toBeNull();
  expect(plan.tokenFloor).toBeGreaterThanOrEqual(floorOfBirth(runtime.clock.wallMs()));
  expect(plan.quietMs).toBe(TTL_MS_MAX + LOCK_DELAY_MS_MAX);
});
