/** The state machine of `leasehold run`, event by event. Times are those of a TTL of 5 s, with deadlines as a sidecar tells them. */
import { describe, expect, test } from 'vitest';
import { EXIT_HELD, EXIT_LOST, EXIT_QUEUE_FULL, EXIT_UNAVAILABLE, EXIT_USAGE } from '../conventions.ts';
import { dueMs, isHolding } from './lease.ts';
import { begin, reduce } from './machine.ts';
import type { Action, Plan, RunEvent, State } from './states.ts';

const TTL_MS = 5_000;
const TOKEN = 7;
const DEADLINE_MS = 4_000;
const TERM_AT_MS = DEADLINE_MS - TTL_MS / 5;
const KILL_AT_MS = DEADLINE_MS - 500;
const TERM = { name: 'SIGTERM', number: 15 } as const;
const USR1 = { name: 'SIGUSR1', number: 10 } as const;
const UNREACHABLE = { kind: 'unreachable', message: 'connection refused' } as const;

const PLAN: Plan = { name: 'jobs/a', wait: { kind: 'atMost', waitMs: 30_000 }, isSkippedIfHeld: false };

/** A run, and all actions so far. */
class Run {
  state: State;
  readonly actions: Action[];
  readonly plan: Plan;

  constructor(plan: Partial<Plan> = {}) {
    this.plan = { ...PLAN, ...plan };
    const { state, actions } = begin(this.plan, 0);
    this.state = state;
    this.actions = [...actions];
  }

  /** What the event makes it do. */
  on(event: RunEvent, nowMs = 0): readonly Action[] {
    const { state, actions } = reduce(this.state, event, nowMs, this.plan);
    this.state = state;
    this.actions.push(...actions);
    return actions;
  }

  at(kind: State['kind']): this {
    const steps: readonly [State['kind'], RunEvent][] = [
      ['waiting', { type: 'opened', session: 's' }],
      ['confirming', { type: 'acquired', token: TOKEN, ttlMs: TTL_MS }],
      ['starting', { type: 'renewed', deadlineMs: DEADLINE_MS }],
      ['running', { type: 'started' }],
      ['terminating', { type: 'revoking', token: TOKEN, cause: 'break' }],
      ['clearing', { type: 'exited', code: 143 }],
      ['releasing', { type: 'cleared' }],
      ['ended', { type: 'closed' }],
    ];
    for (const [next, event] of steps) {
      if (this.state.kind === kind) break;
      this.on(event);
      expect(this.state.kind).toBe(next);
    }
    expect(this.state.kind).toBe(kind);
    return this;
  }

  get exitCode(): number | null {
    return 'exitCode' in this.state ? this.state.exitCode : null;
  }
}

function types(actions: readonly Action[]): string[] {
  return actions.map((action) => (action.type === 'signalGroup' ? action.signal : action.type));
}

function refused(code: Extract<Problem, { kind: 'refused' }>['code'], more: object = {}): Problem {
  return { kind: 'refused', code, message: 'no', ...more };
}
type Problem = Extract<RunEvent, { type: 'acquireFailed' }>['problem'];

test('the whole way: CMD starts only after a renewal said until when; its code comes back when the lock is released', () => {
  const run = new Run();
  expect(run.on({ type: 'opened', session: 's' })).toEqual([
    { type: 'acquire', session: 's', waitMs: 30_000, attempt: 1, afterMs: 0 },
  ]);
  expect(run.on({ type: 'acquired', token: TOKEN, ttlMs: TTL_MS }, 100)).toEqual([
    { type: 'keepRenewing', session: 's', token: TOKEN },
  ]);
  expect(run.on({ type: 'renewed', deadlineMs: DEADLINE_MS }, 110)).toEqual([
    { type: 'start', session: 's', token: TOKEN, killAtMs: KILL_AT_MS },
  ]);
  expect(run.on({ type: 'started' }, 120)).toEqual([]);
  expect(run.on({ type: 'renewed', deadlineMs: DEADLINE_MS + 1_000 }, 1_100)).toEqual([
    { type: 'tellWatchdog', killAtMs: KILL_AT_MS + 1_000 },
  ]);
  expect(types(run.on({ type: 'exited', code: 7 }, 3_500))).toEqual(['clearGroup']);
  expect(run.on({ type: 'cleared' }, 3_510)).toEqual([{ type: 'close', session: 's' }]);
  run.on({ type: 'closed' }, 3_520);
  expect(run.state).toEqual({ kind: 'ended', exitCode: 7 });
});

describe('what time alone demands', () => {
  test.each(['starting', 'running'] as const)(
    '%s: TERM at deadline - TTL/5, KILL at deadline - 500 ms',
    (kind) => {
      const run = new Run().at(kind);
      expect(dueMs(run.state)).toBe(TERM_AT_MS);
      expect(run.on({ type: 'tick' }, TERM_AT_MS - 1)).toEqual([]);
      expect(types(run.on({ type: 'tick' }, TERM_AT_MS))).toEqual(['say', 'SIGTERM']);
      expect(dueMs(run.state)).toBe(KILL_AT_MS);
      expect(types(run.on({ type: 'tick' }, KILL_AT_MS - 1))).toEqual([]);
      expect(types(run.on({ type: 'tick' }, KILL_AT_MS))).toEqual(['SIGKILL']);
      expect(dueMs(run.state)).toBeNull();
      run.on({ type: 'exited', code: 137 }, KILL_AT_MS + 1);
      expect(run.exitCode).toBe(EXIT_LOST);
    },
  );

  test('a renewal moves both; one that is answered after its time does not bring CMD back', () => {
    const run = new Run().at('running');
    run.on({ type: 'renewed', deadlineMs: DEADLINE_MS + 1_000 }, 1_000);
    expect(dueMs(run.state)).toBe(TERM_AT_MS + 1_000);
    const late = run.on({ type: 'renewed', deadlineMs: DEADLINE_MS + 9_000 }, TERM_AT_MS + 1_000);
    expect(types(late)).toEqual(['say', 'SIGTERM']);
    expect(run.state.kind).toBe('terminating');
    run.on({ type: 'renewed', deadlineMs: DEADLINE_MS + 99_000 }, TERM_AT_MS + 1_001);
    expect(dueMs(run.state)).toBe(KILL_AT_MS + 1_000);
  });

  test('resumed after the deadline, whatever is heard first: CMD is killed at once, and the code says lost', () => {
    const firsts: readonly RunEvent[] = [
      { type: 'renewed', deadlineMs: 99_000 },
      { type: 'started' },
      { type: 'signal', signal: USR1 },
      { type: 'tick' },
    ];
    for (const first of firsts) {
      const run = new Run().at('running');
      expect(types(run.on(first, DEADLINE_MS + 1)).slice(0, 2)).toEqual(['say', 'SIGKILL']);
      expect(run.exitCode).toBe(EXIT_LOST);
    }
    const ended = new Run().at('running');
    ended.on({ type: 'exited', code: 0 }, DEADLINE_MS + 1);
    expect(ended.exitCode).toBe(EXIT_LOST);
  });

  test('CMD that is not let go in half a minute is given up, however often the lock is renewed', () => {
    const run = new Run().at('starting');
    for (let now = 1_000; now < 30_000; now += 1_000) {
      expect(types(run.on({ type: 'renewed', deadlineMs: now + DEADLINE_MS }, now))).toEqual([
        'tellWatchdog',
      ]);
    }
    expect(dueMs(run.state)).toBe(30_000);
    expect(types(run.on({ type: 'tick' }, 30_000))).toEqual(['say', 'SIGTERM']);
    expect(run.exitCode).toBe(EXIT_LOST);
  });

  test('a grant that cannot be confirmed, or too late, starts nothing', () => {
    const silent = new Run().at('confirming');
    expect(types(silent.on({ type: 'tick' }, TTL_MS))).toEqual(['hangUp', 'say', 'close']);
    expect(silent.exitCode).toBe(EXIT_LOST);
    const late = new Run().at('confirming');
    expect(late.on({ type: 'renewed', deadlineMs: DEADLINE_MS }, TERM_AT_MS)).toEqual([]);
    expect(late.state.kind).toBe('confirming');
  });
});

describe('losses', () => {
  test('revoking: TERM at once, KILL at the deadline; lost then: a second is left at most', () => {
    const run = new Run().at('running');
    expect(types(run.on({ type: 'revoking', token: TOKEN, cause: 'break' }, 100))).toEqual([
      'say',
      'SIGTERM',
    ]);
    expect(dueMs(run.state)).toBe(KILL_AT_MS);
    run.on({ type: 'lost', token: TOKEN, reason: 'revoked' }, 200);
    expect(dueMs(run.state)).toBe(1_200);
  });

  test.each<RunEvent>([
    { type: 'lost', token: TOKEN, reason: 'broken' },
    { type: 'sessionLost', reason: 'expired' },
    { type: 'renewFailed', problem: { kind: 'refused', code: 'NOT_HELD', message: 'gone' } },
    { type: 'renewFailed', problem: { kind: 'refused', code: 'STALE_TOKEN', message: 'gone' } },
    { type: 'renewFailed', problem: { kind: 'refused', code: 'SESSION_EXPIRED', message: 'gone' } },
    { type: 'watchdogDied' },
  ])('$type: TERM at once, KILL within a second', (event) => {
    const run = new Run().at('running');
    expect(types(run.on(event, 100))).toEqual(['say', 'SIGTERM']);
    expect(dueMs(run.state)).toBe(1_100);
    expect(run.exitCode).toBe(EXIT_LOST);
    const before = new Run().at('confirming');
    expect(types(before.on(event, 100)).at(-1)).toBe('close');
    expect(types(before.actions)).not.toContain('start');
  });

  test('what concerns another token, or can be tried again, changes nothing', () => {
    const run = new Run().at('running');
    const { state } = run;
    run.on({ type: 'lost', token: TOKEN - 1, reason: 'old' }, 100);
    run.on({ type: 'revoking', token: TOKEN - 1, cause: 'break' }, 100);
    run.on({ type: 'renewFailed', problem: UNREACHABLE }, 100);
    run.on({ type: 'renewFailed', problem: refused('UNAVAILABLE') }, 100);
    expect(run.state).toEqual(state);
  });

  test('the watchdog was faster: nothing is left to kill', () => {
    const run = new Run().at('running');
    expect(types(run.on({ type: 'watchdogKilled' }, 100))).toEqual(['say']);
    expect(dueMs(run.state)).toBeNull();
    run.on({ type: 'exited', code: 137 }, 110);
    expect(run.exitCode).toBe(EXIT_LOST);
  });
});

describe('signals', () => {
  test.each(['opening', 'waiting', 'confirming'] as const)(
    '%s: TERM ends it, USR1 has nobody to go to',
    (kind) => {
      const run = new Run().at(kind);
      expect(run.on({ type: 'signal', signal: USR1 })).toEqual([]);
      const expected = kind === 'opening' ? ['hangUp'] : ['hangUp', 'close'];
      expect(types(run.on({ type: 'signal', signal: TERM }))).toEqual(expected);
      expect(run.exitCode).toBe(143);
    },
  );

  test.each(['starting', 'running', 'terminating'] as const)('%s: passed on, and CMD decides', (kind) => {
    const run = new Run().at(kind);
    expect(types(run.on({ type: 'signal', signal: TERM }))).toEqual(['SIGTERM']);
    expect(types(run.on({ type: 'signal', signal: USR1 }))).toEqual(['SIGUSR1']);
    expect(run.state.kind).toBe(kind);
  });

  test.each(['clearing', 'releasing', 'ended'] as const)('%s: it is ending already', (kind) => {
    const run = new Run().at(kind);
    expect(run.on({ type: 'signal', signal: TERM })).toEqual([]);
    expect(run.state.kind).toBe(kind);
  });
});

describe('the wait', () => {
  test.each([
    ['HELD', EXIT_HELD],
    ['WAIT_TIMEOUT', EXIT_HELD],
    ['QUEUE_FULL', EXIT_QUEUE_FULL],
    ['UNAVAILABLE', EXIT_UNAVAILABLE],
    ['NAMESPACE_NOT_FOUND', EXIT_USAGE],
    ['INVALID', EXIT_USAGE],
  ] as const)('%s ends it with %i', (code, exitCode) => {
    const run = new Run().at('waiting');
    expect(types(run.on({ type: 'acquireFailed', problem: refused(code) }))).toEqual([
      'hangUp',
      'say',
      'close',
    ]);
    expect(run.exitCode).toBe(exitCode);
  });

  test('--skip-if-held: somebody else holding it is no failure, a full queue is one', () => {
    const held = new Run({ isSkippedIfHeld: true, wait: { kind: 'none' } }).at('waiting');
    held.on({ type: 'acquireFailed', problem: refused('HELD') });
    expect(held.exitCode).toBe(0);
    expect(types(held.actions)).not.toContain('say');
    const full = new Run({ isSkippedIfHeld: true }).at('waiting');
    full.on({ type: 'acquireFailed', problem: refused('QUEUE_FULL') });
    expect(full.exitCode).toBe(EXIT_QUEUE_FULL);
    expect(types(full.actions)).toContain('say');
  });

  test('without a flag: asks for a day, and learns what the namespace allows', () => {
    const run = new Run({ wait: { kind: 'namespace' } }).at('waiting');
    expect(run.actions.at(-1)).toMatchObject({ waitMs: 86_400_000 });
    const problem = refused('INVALID', { field: 'wait_ms', limit: 600_000 });
    expect(run.on({ type: 'acquireFailed', problem }, 50)).toEqual([
      { type: 'acquire', session: 's', waitMs: 600_000, attempt: 2, afterMs: 0 },
    ]);
    const stated = new Run().at('waiting');
    stated.on({ type: 'acquireFailed', problem });
    expect(stated.exitCode).toBe(EXIT_USAGE);
  });

  test('a lost connection: the same request again, for what is left of the wait', () => {
    const run = new Run().at('waiting');
    expect(run.on({ type: 'acquireFailed', problem: UNREACHABLE }, 10_000)).toEqual([
      { type: 'acquire', session: 's', waitMs: 19_750, attempt: 1, afterMs: 250 },
    ]);
    run.on({ type: 'acquireFailed', problem: UNREACHABLE }, 29_900);
    expect(run.exitCode).toBe(EXIT_UNAVAILABLE);
  });

  test('a session that ended while it waited: a new one and a new request, three times at most', () => {
    const run = new Run().at('waiting');
    for (let reopened = 1; reopened <= 3; reopened++) {
      expect(types(run.on({ type: 'acquireFailed', problem: refused('SESSION_EXPIRED') }, 1_000))).toEqual([
        'open',
      ]);
      const [acquire] = run.on({ type: 'opened', session: `s${reopened}` }, 1_000);
      expect(acquire).toMatchObject({ session: `s${reopened}`, attempt: 1 + reopened, waitMs: 29_000 });
    }
    run.on({ type: 'acquireFailed', problem: refused('SESSION_EXPIRED') }, 1_000);
    expect(run.exitCode).toBe(EXIT_LOST);
  });

  test('nobody there: looked for as long as one would wait, up to five seconds', () => {
    const impatient = new Run({ wait: { kind: 'none' } });
    impatient.on({ type: 'openFailed', problem: UNREACHABLE }, 10);
    expect(impatient.state).toEqual({ kind: 'ended', exitCode: EXIT_UNAVAILABLE });
    const patient = new Run();
    expect(patient.on({ type: 'openFailed', problem: UNREACHABLE }, 4_000)).toEqual([
      { type: 'open', afterMs: 250 },
    ]);
    patient.on({ type: 'openFailed', problem: UNREACHABLE }, 4_900);
    expect(patient.state).toEqual({ kind: 'ended', exitCode: EXIT_UNAVAILABLE });
  });
});

test('no event makes a state that has let go hold again, nor starts CMD twice', () => {
  const events: readonly RunEvent[] = [
    { type: 'opened', session: 'x' },
    { type: 'acquired', token: 9, ttlMs: TTL_MS },
    { type: 'renewed', deadlineMs: 99_000 },
    { type: 'started' },
    { type: 'acquireFailed', problem: UNREACHABLE },
    { type: 'watchdogDied' },
    { type: 'tick' },
  ];
  for (const kind of ['terminating', 'clearing', 'releasing', 'ended'] as const) {
    for (const event of events) {
      const run = new Run().at(kind);
      expect(types(run.on(event, 50))).toEqual([]);
      expect(isHolding(run.state), `${kind} ${event.type}`).toBe(false);
    }
  }
  for (const kind of ['starting', 'running'] as const) {
    for (const event of events) {
      expect(types(new Run().at(kind).on(event, 50)), `${kind} ${event.type}`).not.toContain('start');
    }
  }
});
