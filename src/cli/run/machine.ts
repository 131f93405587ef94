/**
 * What `leasehold run` does next: a pure function of where it stands, what happened, and the time. The runner around it only carries
 * out actions. Times are milliseconds of LeaseTime, which runs on while this process is stopped or the machine sleeps.
 *
 * The session lives by calls (`keepalive: "app"`), not by a stream: a stopped wrapper loses the lock one TTL after its last call either
 * way, but a killed one would with its stream lose it *at once*, and the next holder could begin before the watchdog has ended CMD.
 */
import type { ErrorCode } from '../../api/errors.ts';
import { WAIT_MS_MAX } from '../../api/limits.ts';
import { assert } from '../../core/assert.ts';
import { EXIT_HELD, EXIT_LOST, EXIT_OF_CODE, EXIT_SIGNAL, EXIT_UNAVAILABLE } from '../conventions.ts';
import { dueMs, KILL_BEFORE_MS, killAtMs, termAtMs, tokenOf } from './lease.ts';
import type {
  Action,
  Lease,
  PassedSignal,
  Plan,
  Problem,
  RunEvent,
  Search,
  State,
  Step,
  WaitPolicy,
} from './states.ts';

/** What CMD gets to end by itself when somebody else may hold the lock already. */
const LOST_GRACE_MS = 1_000;
/** How long a lock API that is not there is looked for before anything waits (rule S11). */
const UNREACHABLE_MS_MAX = 5_000;
const RETRY_MS = 250;
/** How long a watchdog may take to let CMD go: a lock is not to be held for nothing. */
const START_MS_MAX = 30_000;
/** Sessions that end while their acquire waits are opened anew so often: nothing was held, only the place is lost. */
const REOPENS_MAX = 3;

/** The first step. */
export function begin({ wait }: Plan, nowMs: number): Step {
  const waitMs = firstWaitMs(wait);
  const search = { waitUntilMs: nowMs + waitMs, attempt: 1, reopens: 0 };
  const giveUpAtMs = nowMs + Math.min(waitMs, UNREACHABLE_MS_MAX);
  return { state: { kind: 'opening', search, giveUpAtMs }, actions: [{ type: 'open', afterMs: 0 }] };
}

/** Events that mean nothing in a state change nothing. What time alone demands comes before what happened. */
export function reduce(state: State, event: RunEvent, nowMs: number, plan: Plan): Step {
  const due = afterTime(state, nowMs);
  const next = onEvent(due.state, event, nowMs, plan);
  return { state: next.state, actions: [...due.actions, ...next.actions] };
}

function afterTime(state: State, nowMs: number): Step {
  const due = dueMs(state);
  if (due === null || nowMs < due) return stay(state);
  switch (state.kind) {
    case 'confirming':
      return giveUp(state.session, EXIT_LOST, 'the lock was lost before CMD was started');
    case 'starting':
    case 'running': {
      const isLate = nowMs < termAtMs(state.lease);
      const why = isLate ? 'the watchdog does not let CMD begin' : 'no renewal was acknowledged in time';
      return terminate(state.lease, nowMs, { killAtMs: killAtMs(state.lease), why });
    }
    case 'terminating':
      return { state: { ...state, isKilled: true }, actions: [{ type: 'signalGroup', signal: 'SIGKILL' }] };
    default:
      return stay(state);
  }
}

function onEvent(state: State, event: RunEvent, nowMs: number, plan: Plan): Step {
  switch (event.type) {
    case 'opened':
      return state.kind === 'opening' ? acquire(event.session, state.search, nowMs, 0) : stay(state);
    case 'openFailed':
      return state.kind === 'opening' ? onOpenFailed(state, event.problem, nowMs) : stay(state);
    case 'acquired':
      return state.kind === 'waiting' ? onAcquired(state.session, event, nowMs) : stay(state);
    case 'acquireFailed':
      return state.kind === 'waiting' ? onAcquireFailed(state, event.problem, nowMs, plan) : stay(state);
    case 'renewed':
      return onRenewed(state, event.deadlineMs, nowMs);
    case 'renewFailed':
      return event.problem.kind === 'refused' && isOver(event.problem.code)
        ? onLost(state, nowMs, event.problem.message)
        : stay(state);
    case 'revoking':
      return onRevoking(state, event, nowMs);
    case 'lost':
      return tokenOf(state) === event.token ? onLost(state, nowMs, event.reason) : stay(state);
    case 'sessionLost':
      return onLost(state, nowMs, event.reason);
    case 'started':
      return state.kind === 'starting' ? stay({ kind: 'running', lease: state.lease }) : stay(state);
    case 'exited':
      return onExited(state, event.code);
    case 'cleared':
      return state.kind === 'clearing' ? release(state.session, state.exitCode) : stay(state);
    case 'closed':
      return state.kind === 'releasing' ? stay({ kind: 'ended', exitCode: state.exitCode }) : stay(state);
    case 'signal':
      return onSignal(state, event.signal);
    case 'watchdogKilled':
      return onWatchdogKilled(state);
    case 'watchdogDied':
      return onWatchdogDied(state, nowMs);
    case 'tick':
      return stay(state);
  }
}

function onOpenFailed(state: Extract<State, { kind: 'opening' }>, problem: Problem, nowMs: number): Step {
  if (problem.kind === 'unreachable' && nowMs + RETRY_MS < state.giveUpAtMs) {
    return { state, actions: [{ type: 'open', afterMs: RETRY_MS }] };
  }
  return giveUp(null, exitCodeOf(problem), textOf(problem));
}

function onAcquired(
  session: string,
  { token, ttlMs }: { readonly token: number; readonly ttlMs: number },
  nowMs: number,
): Step {
  assert(token > 0 && ttlMs > KILL_BEFORE_MS, 'a grant has a token and a TTL');
  return {
    state: { kind: 'confirming', session, token, ttlMs, giveUpAtMs: nowMs + ttlMs },
    actions: [{ type: 'keepRenewing', session, token }],
  };
}

function onAcquireFailed(
  state: Extract<State, { kind: 'waiting' }>,
  problem: Problem,
  nowMs: number,
  plan: Plan,
): Step {
  const { session, search } = state;
  if (problem.kind === 'unreachable') {
    // The same request again: it keeps its place, or is told what became of it (rule C4).
    if (nowMs + RETRY_MS < search.waitUntilMs) return acquire(session, search, nowMs, RETRY_MS);
    return giveUp(session, EXIT_UNAVAILABLE, problem.message);
  }
  const { code, field, limit } = problem;
  if (
    code === 'INVALID' &&
    field === 'wait_ms' &&
    typeof limit === 'number' &&
    plan.wait.kind === 'namespace'
  ) {
    const waitUntilMs = nowMs + limit;
    return acquire(session, { ...search, waitUntilMs, attempt: search.attempt + 1 }, nowMs, 0);
  }
  if (code === 'SESSION_EXPIRED' && search.reopens < REOPENS_MAX) {
    const again = { ...search, attempt: search.attempt + 1, reopens: search.reopens + 1 };
    const giveUpAtMs = nowMs + UNREACHABLE_MS_MAX;
    return {
      state: { kind: 'opening', search: again, giveUpAtMs },
      actions: [{ type: 'open', afterMs: 0 }],
    };
  }
  // What was asked for is no news: cron would send a mail of it.
  if (EXIT_OF_CODE[code] === EXIT_HELD && plan.isSkippedIfHeld) return giveUp(session, 0, null);
  return giveUp(session, EXIT_OF_CODE[code], textOf(problem));
}

function onRenewed(state: State, deadlineMs: number, nowMs: number): Step {
  if (state.kind === 'confirming') {
    const { session, token, ttlMs } = state;
    const lease = { session, token, ttlMs, deadlineMs };
    if (nowMs >= termAtMs(lease)) return stay(state);
    return {
      state: { kind: 'starting', lease, startByMs: nowMs + START_MS_MAX },
      actions: [{ type: 'start', session, token, killAtMs: killAtMs(lease) }],
    };
  }
  if (state.kind !== 'starting' && state.kind !== 'running') return stay(state);
  // Time came first: a deadline that has passed is not moved any more.
  assert(nowMs < termAtMs(state.lease), 'a lease in use is not near its end');
  assert(Number.isFinite(deadlineMs), 'a deadline is a time');
  const lease = { ...state.lease, deadlineMs };
  const told = { state: { ...state, lease }, actions: [] };
  const { state: after, actions } = afterTime(told.state, nowMs);
  return { state: after, actions: [{ type: 'tellWatchdog', killAtMs: killAtMs(lease) }, ...actions] };
}

function onRevoking(
  state: State,
  { token, cause }: { readonly token: number; readonly cause: string },
  nowMs: number,
): Step {
  if (tokenOf(state) !== token) return stay(state);
  const why = `the lock is being taken away (${cause})`;
  switch (state.kind) {
    case 'confirming':
      return giveUp(state.session, EXIT_LOST, `${why} before CMD was started`);
    case 'starting':
    case 'running':
      return terminate(state.lease, nowMs, { killAtMs: killAtMs(state.lease), why });
    default:
      return stay(state);
  }
}

/** Somebody else may hold it already: CMD does not get the time up to its old deadline. */
function onLost(state: State, nowMs: number, reason: string): Step {
  const soonMs = nowMs + LOST_GRACE_MS;
  switch (state.kind) {
    case 'confirming':
      return giveUp(state.session, EXIT_LOST, `the lock was lost before CMD was started: ${reason}`);
    case 'starting':
    case 'running': {
      const until = Math.min(killAtMs(state.lease), soonMs);
      return terminate(state.lease, nowMs, { killAtMs: until, why: `the lock is lost: ${reason}` });
    }
    case 'terminating':
      return stay({ ...state, killAtMs: Math.min(state.killAtMs, soonMs) });
    default:
      return stay(state);
  }
}

function onExited(state: State, code: number): Step {
  switch (state.kind) {
    case 'starting':
    case 'running':
      return clear(state.lease.session, code);
    case 'terminating':
      return clear(state.lease.session, state.exitCode);
    default:
      return stay(state);
  }
}

function onSignal(state: State, { name, number }: PassedSignal): Step {
  switch (state.kind) {
    case 'opening':
    case 'waiting':
    case 'confirming': {
      if (isRequest(name)) return stay(state);
      const session = state.kind === 'opening' ? null : state.session;
      return giveUp(session, EXIT_SIGNAL + number, null);
    }
    case 'starting':
    case 'running':
    case 'terminating':
      return { state, actions: [{ type: 'signalGroup', signal: name }] };
    default:
      return stay(state);
  }
}

/** These two ask a program for something: before there is one they end nothing. */
export function isRequest(signal: NodeJS.Signals): boolean {
  return signal === 'SIGUSR1' || signal === 'SIGUSR2';
}

function onWatchdogKilled(state: State): Step {
  if (state.kind !== 'starting' && state.kind !== 'running') return stay(state);
  const { lease } = state;
  return {
    state: {
      kind: 'terminating',
      lease,
      killAtMs: killAtMs(lease),
      isKilled: true,
      exitCode: EXIT_LOST,
    },
    actions: [{ type: 'say', text: 'the lock is lost: its deadline passed, and the watchdog ended CMD' }],
  };
}

function onWatchdogDied(state: State, nowMs: number): Step {
  const why = 'the watchdog has died';
  switch (state.kind) {
    case 'opening':
      return giveUp(null, EXIT_UNAVAILABLE, why);
    case 'waiting':
    case 'confirming':
      return giveUp(state.session, EXIT_UNAVAILABLE, why);
    case 'starting':
    case 'running': {
      const until = Math.min(killAtMs(state.lease), nowMs + LOST_GRACE_MS);
      return terminate(state.lease, nowMs, { killAtMs: until, why: `${why}: CMD must not run without it` });
    }
    default:
      return stay(state);
  }
}

function acquire(session: string, search: Search, nowMs: number, afterMs: number): Step {
  const waitMs = Math.max(0, Math.ceil(search.waitUntilMs - nowMs - afterMs));
  return {
    state: { kind: 'waiting', session, search },
    actions: [{ type: 'acquire', session, waitMs, attempt: search.attempt, afterMs }],
  };
}

function terminate(
  lease: Lease,
  nowMs: number,
  { killAtMs: until, why }: { readonly killAtMs: number; readonly why: string },
): Step {
  assert(until <= lease.deadlineMs - KILL_BEFORE_MS, 'CMD never gets more time than its lease has');
  const isKilled = nowMs >= until;
  assert(isKilled || until - nowMs <= lease.ttlMs, 'nor more than a TTL');
  return {
    state: { kind: 'terminating', lease, killAtMs: until, isKilled, exitCode: EXIT_LOST },
    actions: [
      { type: 'say', text: `${why}; ending CMD` },
      { type: 'signalGroup', signal: isKilled ? 'SIGKILL' : 'SIGTERM' },
    ],
  };
}

function clear(session: string, exitCode: number): Step {
  return { state: { kind: 'clearing', session, exitCode }, actions: [{ type: 'clearGroup' }] };
}

function release(session: string, exitCode: number): Step {
  return { state: { kind: 'releasing', exitCode }, actions: [{ type: 'close', session }] };
}

/** Ends a run that has not started CMD. */
function giveUp(session: string | null, exitCode: number, text: string | null): Step {
  const said: readonly Action[] = text === null ? [] : [{ type: 'say', text }];
  const actions: readonly Action[] = [{ type: 'hangUp' }, ...said];
  if (session === null) return { state: { kind: 'ended', exitCode }, actions };
  const { state, actions: more } = release(session, exitCode);
  return { state, actions: [...actions, ...more] };
}

function stay(state: State): Step {
  return { state, actions: [] };
}

function firstWaitMs(wait: WaitPolicy): number {
  switch (wait.kind) {
    case 'none':
      return 0;
    case 'atMost':
      return wait.waitMs;
    case 'namespace':
      return WAIT_MS_MAX;
  }
}

function isOver(code: ErrorCode): boolean {
  return EXIT_OF_CODE[code] === EXIT_LOST;
}

function exitCodeOf(problem: Problem): number {
  return problem.kind === 'refused' ? EXIT_OF_CODE[problem.code] : EXIT_UNAVAILABLE;
}

function textOf(problem: Problem): string {
  return problem.kind === 'refused' ? `${problem.code}: ${problem.message}` : problem.message;
}
