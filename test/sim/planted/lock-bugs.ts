/** Bugs in what came with shared and semaphore locks and with re-entrancy: see bugs.ts. */
import type { SemaphorePattern } from '../../../src/api/config.ts';
import type { Plan } from '../plan.ts';
import type { LockHabits } from '../plan-locks.ts';
import type { PlantedBug } from './bug.ts';

/** Types alone are imported here: what is loaded before a bug is planted stays sound. */
const PLAIN: LockHabits = {
  modes: ['exclusive'],
  reentrant: 0,
  takesMore: 0,
  asksWrong: 0,
  owners: [undefined],
};

/** The same plan, with these locks asked for and nothing in their way. */
export function asking(
  plan: Plan,
  habits: Partial<LockHabits>,
  semaphores: readonly SemaphorePattern[] = [],
): Plan {
  const locks = { ...PLAIN, ...habits };
  const config = { ...plan.config, modes: locks.modes, semaphores, heldLocks: 1_000, locksPerClient: 100 };
  return { ...plan, locks, config };
}

/** Locks are kept for so long that others come meanwhile. */
function busy(plan: Plan): Plan {
  const habits = { ...plan.habits, thinkMs: 1_000, holdMs: 4_000, waitMs: [0, 20_000] };
  return { ...plan, names: 1, habits };
}

/** Machines fall asleep again and again, for longer than the margin of a short TTL, and now and then off the line. */
export function withSleepyMachines(plan: Plan): Plan {
  return {
    ...plan,
    aliases: ['blue'],
    isOneProcess: false,
    sidecars: 3,
    names: 1,
    sleepMs: [1_900],
    faults: new Map([
      ['machineSleep', 2_500],
      ['linkCutSilently', 8_000],
      ['linkCut', 8_000],
    ]),
    config: { ...plan.config, ttlMs: 5_000, lockDelayMs: 0 },
    habits: { ...plan.habits, holdMs: 20_000, waitMs: [60_000], thinkMs: 1_000, keepaliveShare: 0.2 },
  };
}

const reentrant = (plan: Plan): Plan => busy(asking(plan, { reentrant: 1, takesMore: 0.3 }));
const TWO_PERMITS = [{ pattern: 'job-*', permits: 2 }];

export const LOCK_BUGS: readonly PlantedBug[] = [
  {
    name: 'a reader overtakes a waiting writer',
    rule: 'C2',
    file: 'src/core/acquire.ts',
    from: 'if (lock !== undefined && (lock.queue !== null || !fitsNow(config, lock, request))) {',
    to: `const overtakes = request.mode === 'shared';
  if (lock !== undefined && ((lock.queue !== null && !overtakes) || !fitsNow(config, lock, request))) {`,
    change: (plan) => busy(asking(plan, { modes: ['exclusive', 'shared'] })),
  },
  {
    name: 'a semaphore gives one permit too many',
    rule: 'C2',
    file: 'src/core/policy.ts',
    from: 'if (matches(pattern, name)) return permits;',
    to: 'if (matches(pattern, name)) return permits + 1;',
    change: (plan) => busy(asking(plan, { modes: ['semaphore'] }, TWO_PERMITS)),
  },
  {
    name: 'the first of two releases frees a re-entrant lock',
    rule: 'C6',
    file: 'src/core/ends.ts',
    from: 'if (keyCount(hold) > 1) leaveHold(hold, record);',
    to: 'if (keyCount(hold) > 2) leaveHold(hold, record);',
    change: reentrant,
  },
  {
    name: 'an acquire joins a grant that is being taken away',
    rule: 'C6',
    file: 'src/core/holds.ts',
    from: '  if (record.request.reentrant) stopJoining(hold);\n  hold.revoking = cause;',
    to: '  hold.revoking = cause;',
    faults: ['breakLock'],
    change: reentrant,
  },
  {
    name: 'the oldest grant is taken away when permits are cut',
    rule: 'C9',
    file: 'src/core/backlog-steps.ts',
    from: 'const hold = newestKept(crowd);',
    to: `let hold = crowd.oldest;
  while (hold !== null && hold.revoking !== null) hold = hold.newer;`,
    faults: ['modesChange'],
    change: (plan) =>
      busy(asking(plan, { modes: ['semaphore'], takesMore: 0.3 }, [{ pattern: 'job-*', permits: 4 }])),
  },
  {
    name: 'a reader under a revoke is told later and later deadlines',
    rule: 'C9',
    file: 'src/sidecar/namespace-session.ts',
    from: 'return Math.min(this.deadlineMs, grant.revoke?.lease.deadlineMs ?? Number.POSITIVE_INFINITY);',
    to: `const revokedMs = grant.body.mode === 'shared' ? undefined : grant.revoke?.lease.deadlineMs;
    return Math.min(this.deadlineMs, revokedMs ?? Number.POSITIVE_INFINITY);`,
    faults: ['breakLock'],
    change: (plan) => busy(asking(plan, { modes: ['exclusive', 'shared'] })),
  },
  {
    name: 'a restart of the sidecar forgets who shares a grant',
    rule: 'A4',
    file: 'src/sidecar/envelopes.ts',
    from: "held: known.filter(({ type }) => type === 'grant').map(grantFrom),",
    to: `held: known
            .filter(({ type }) => type === 'grant')
            .filter(({ token }, i, all) => all.findIndex((one) => one.token === token) === i)
            .map(grantFrom),`,
    faults: ['sidecarCrash'],
    change: reentrant,
  },
  {
    name: 'the cancel of one acquire takes the grant from all that share it',
    rule: 'A5',
    file: 'src/core/release.ts',
    from: '    giveUp(state, now, record, events);\n',
    to: '    for (const one of now.keys === null ? [record] : [...now.keys]) giveUp(state, now, one, events);\n',
    change: (plan) => reentrant({ ...plan, habits: { ...plan.habits, hangsUp: 0.4 } }),
  },
  {
    name: 'the end of a session touches its holds on quarantined names',
    rule: 'C13',
    file: 'src/core/backlog-steps.ts',
    from: 'return isHeld && !target.lock.quarantined && (',
    to: 'return isHeld && (',
    faults: ['quarantine', 'appCrash'],
    change: (plan) => busy(asking(plan, { modes: ['exclusive', 'shared'] })),
  },
  {
    name: 'a sleep that outlasts the margin is not noticed',
    rule: 'A2',
    commit: '28d4c8d',
    file: 'src/api/lease.ts',
    from: 'return Math.min(SUSPEND_MS_MAX, (marginMs(ttlMs) * 2) / 3);',
    to: 'return ttlMs > 0 ? SUSPEND_MS_MAX : 0;',
    change: withSleepyMachines,
  },
];
