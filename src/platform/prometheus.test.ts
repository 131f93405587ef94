/** The metrics' names and labels are part of what operators build on. */
import { describe, expect, it } from 'vitest';
import { createMetrics } from './prometheus.ts';

const GAUGES = { sessions: 1, heldLocks: 2, waiters: 3, longestQueue: 4, logBytes: 5, snapshotBytes: 6 };

describe('metrics', () => {
  it('counts what the lock server tells, per namespace', async () => {
    const metrics = createMetrics();
    const server = metrics.server('payouts');
    server.granted(250);
    server.granted(0);
    server.held(1_000);
    server.refused('HELD');
    server.sessionExpired('expired');
    server.fencingRejected();
    server.committed(3, 17);
    server.stalled(700);
    server.leaderChanged();
    const text = await metrics.text();
    for (const line of [
      'leasehold_grants_total{namespace="payouts"} 2',
      'leasehold_wait_seconds_sum{namespace="payouts"} 0.25',
      'leasehold_hold_seconds_sum{namespace="payouts"} 1',
      'leasehold_refusals_total{namespace="payouts",code="HELD"} 1',
      'leasehold_session_expiries_total{namespace="payouts",cause="expired"} 1',
      'leasehold_fencing_rejections_total{namespace="payouts"} 1',
      'leasehold_commit_seconds_sum{namespace="payouts"} 0.003',
      'leasehold_batch_commands_sum{namespace="payouts"} 17',
      'leasehold_stall_seconds_sum{namespace="payouts"} 0.7',
      'leasehold_leader_changes_total{namespace="payouts"} 1',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });

  it('counts what the sidecar tells', async () => {
    const metrics = createMetrics();
    const sidecar = metrics.sidecar('payouts');
    sidecar.acquired('granted', 500);
    sidecar.acquired('WAIT_TIMEOUT', 1_500);
    sidecar.jeopardy();
    sidecar.lost();
    sidecar.leaseExpiredWhileWorking();
    const text = await metrics.text();
    for (const line of [
      'leasehold_acquire_seconds_sum{namespace="payouts",outcome="granted"} 0.5',
      'leasehold_acquire_seconds_count{namespace="payouts",outcome="WAIT_TIMEOUT"} 1',
      'leasehold_jeopardy_total{namespace="payouts"} 1',
      'leasehold_grants_lost_total{namespace="payouts"} 1',
      'leasehold_lease_expired_while_working_total{namespace="payouts"} 1',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });

  it('reads gauges at the scrape, from every namespace that is observed, and only while it is', async () => {
    const metrics = createMetrics();
    const gauges = { ...GAUGES };
    const stop = metrics.server('payouts').observe(() => gauges);
    metrics.server('exports').observe(() => ({ ...GAUGES, heldLocks: 20 }));
    metrics.sidecar('payouts').observe(() => ({ sessions: 7, grants: 8, waits: 9 }));
    gauges.waiters = 30;
    const text = await metrics.text();
    expect(text).toContain('leasehold_waiters{namespace="payouts"} 30');
    expect(text).toContain('leasehold_held_locks{namespace="exports"} 20');
    expect(text).toContain('leasehold_sidecar_grants{namespace="payouts"} 8');
    stop();
    const after = await metrics.text();
    expect(after).not.toContain('leasehold_waiters{namespace="payouts"}');
    expect(after).toContain('leasehold_waiters{namespace="exports"} 3');
  });

  it('two registries in one process share nothing', async () => {
    const [one, other] = [createMetrics(), createMetrics()];
    one.server('payouts').leaderChanged();
    expect(await other.text()).not.toContain('payouts');
  });
});

it('what somebody may be paged for is there with 0 before it happens first', async () => {
  const metrics = createMetrics();
  metrics.sidecar('payouts');
  metrics.server('payouts');
  metrics.audit('payouts');
  const text = await metrics.text();
  for (const name of [
    'lease_expired_while_working_total',
    'grants_lost_total',
    'jeopardy_total',
    'fencing_rejections_total',
    'leader_changes_total',
    'halts_total',
    'audit_failures_total',
    'audit_gaps_total',
  ]) {
    expect(text).toContain(`leasehold_${name}{namespace="payouts"} 0\n`);
  }
});
