/**
 * Carries out what the state machine of `leasehold run` asks for, and tells it what happened. Decides nothing itself.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { LeaseholdError } from '../../api/errors.ts';
import { pause } from '../../platform/pause.ts';
import type { Timer } from '../../platform/runtime.ts';
import { systemTimers } from '../../platform/system-time.ts';
import { EXIT_CANNOT_RUN, EXIT_SIGNAL } from '../conventions.ts';
import { UnavailableError } from '../errors.ts';
import type { EventLine } from '../http/answers.ts';
import type { AcquireBody, LockApi } from '../http/lock-api.ts';
import { refusalText } from '../output/held.ts';
import { GuardedChild } from './guarded-child.ts';
import { dueMs, isHolding } from './lease.ts';
import { LeaseTime } from './lease-time.ts';
import { begin, isRequest, reduce } from './machine.ts';
import type { Action, PassedSignal, Plan, Problem, RunEvent, State } from './states.ts';

/** Timers stand still while the machine sleeps, so a deadline is looked at this often. */
const LOOK_EVERY_MS = 250;
/** A call that is not answered within TTL/5 is given up and made again (case J05). */
const CALL_MS_MIN = 1_000;
const RETRY_MS = 250;
/** How long giving the lock back is tried; after that its TTL frees it. */
const CLOSE_MS_MAX = 3_000;
const REQUEST_ID_BYTES = 8;

export interface RunOptions {
  readonly api: LockApi;
  readonly plan: Plan;
  readonly command: readonly string[];
  /** What people see of the holder. */
  readonly client: string;
  readonly owner?: string;
  readonly purpose: string;
  readonly ttlMs?: number;
  readonly mode: Pick<AcquireBody, 'mode' | 'permits'>;
  /** For people, on standard error. */
  readonly say: (text: string) => void;
}

export class Runner {
  readonly #options: RunOptions;
  readonly #time = new LeaseTime();
  readonly #child: GuardedChild;
  readonly #requestPrefix = randomBytes(REQUEST_ID_BYTES).toString('hex');
  readonly #ended: Promise<number>;
  readonly #end: (exitCode: number) => void;
  /** Events that came while one was worked off. */
  readonly #events: RunEvent[] = [];
  #isWorking = false;
  #state: State;
  #timer: Timer | null = null;
  readonly #hangUp = new AbortController();
  /** Ends the event stream of the session before. */
  #closeStream = new AbortController();
  #keepaliveMs = CALL_MS_MIN;
  #killAtMs = 0;

  constructor(options: RunOptions) {
    this.#options = options;
    // Not by Promise.withResolvers: this command runs on Node.js 20 too.
    let end: (exitCode: number) => void = () => undefined;
    this.#ended = new Promise((resolve) => {
      end = resolve;
    });
    this.#end = (exitCode) => end(exitCode);
    this.#child = new GuardedChild({
      onStarted: () => this.tell({ type: 'started' }),
      onExited: (code) => this.tell({ type: 'exited', code }),
      onUnstartable: (error) => this.#unstartable(error),
      onWatchdogKilled: () => this.tell({ type: 'watchdogKilled' }),
      onWatchdogDied: () => this.tell({ type: 'watchdogDied' }),
    });
    const first = begin(options.plan, this.#time.nowMs());
    this.#state = first.state;
    for (const action of first.actions) this.#carryOut(action);
  }

  /** Resolves with the exit code when everything is over. */
  run(): Promise<number> {
    return this.#ended;
  }

  signal(signal: PassedSignal): void {
    this.tell({ type: 'signal', signal });
  }

  tell(event: RunEvent): void {
    this.#events.push(event);
    if (this.#isWorking) return;
    this.#isWorking = true;
    for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
      const step = reduce(this.#state, next, this.#time.nowMs(), this.#options.plan);
      this.#state = step.state;
      for (const action of step.actions) this.#carryOut(action);
    }
    this.#isWorking = false;
    this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    if (this.#state.kind === 'ended') {
      this.#closeStream.abort();
      this.#child.end();
      this.#end(this.#state.exitCode);
      return;
    }
    const due = dueMs(this.#state);
    if (due === null) return;
    const inMs = Math.min(Math.max(0, due - this.#time.nowMs()), LOOK_EVERY_MS);
    this.#timer = systemTimers.after(inMs, () => this.tell({ type: 'tick' }));
  }

  #carryOut(action: Action): void {
    switch (action.type) {
      case 'open':
        void this.#open(action.afterMs);
        break;
      case 'acquire':
        void this.#acquire(action);
        break;
      case 'hangUp':
        this.#hangUp.abort();
        break;
      case 'keepRenewing':
        void this.#keepRenewing(action);
        break;
      case 'start':
        this.#killAtMs = action.killAtMs;
        void this.#start(action);
        break;
      case 'tellWatchdog':
        this.#killAtMs = action.killAtMs;
        this.#child.moveDeadline(this.#time.momentOf(action.killAtMs));
        break;
      case 'signalGroup':
        this.#signalGroup(action.signal);
        break;
      case 'clearGroup':
        void this.#child.clear().then(() => this.tell({ type: 'cleared' }));
        break;
      case 'close':
        void this.#close(action.session);
        break;
      case 'say':
        this.#options.say(action.text);
        break;
    }
  }

  async #open(afterMs: number): Promise<void> {
    const { api, client, ttlMs } = this.#options;
    await pause(systemTimers, afterMs);
    const ttl = ttlMs === undefined ? {} : { ttl_s: ttlMs / 1000 };
    const { signal } = this.#hangUp;
    try {
      const opened = await api.open({ client, keepalive: 'app', ...ttl }, { signal });
      this.#keepaliveMs = opened.keepalive_every_s * 1000;
      this.#listen(opened.session_id);
      this.tell({ type: 'opened', session: opened.session_id });
    } catch (error) {
      this.tell({ type: 'openFailed', problem: problemOf(error) });
    }
  }

  async #acquire(action: Extract<Action, { type: 'acquire' }>): Promise<void> {
    const { api, plan, owner, purpose, mode } = this.#options;
    await pause(systemTimers, action.afterMs);
    const body = {
      session_id: action.session,
      wait_ms: action.waitMs,
      purpose,
      request: `${this.#requestPrefix}-${action.attempt}`,
      ...(owner !== undefined && { owner }),
      ...mode,
    };
    try {
      const granted = await api.acquire(plan.name, body, { signal: this.#hangUp.signal });
      this.tell({ type: 'acquired', token: granted.token, ttlMs: granted.lease_ttl_ms });
    } catch (error) {
      this.tell({ type: 'acquireFailed', problem: problemOf(error) });
    }
  }

  async #keepRenewing({ session, token }: Extract<Action, { type: 'keepRenewing' }>): Promise<void> {
    const { api, plan } = this.#options;
    const timeoutMs = Math.max(this.#keepaliveMs, CALL_MS_MIN);
    // The state is that of the action only when the event it belongs to has been worked off.
    await pause(systemTimers, 0);
    while (isHolding(this.#state)) {
      const sentMs = this.#time.nowMs();
      try {
        const renewed = await api.renew(plan.name, { session_id: session, token }, { timeoutMs });
        this.tell({ type: 'renewed', deadlineMs: sentMs + renewed.deadline_in_ms });
        await pause(systemTimers, this.#keepaliveMs);
      } catch (error) {
        this.tell({ type: 'renewFailed', problem: problemOf(error) });
        await pause(systemTimers, RETRY_MS);
      }
    }
  }

  async #start({ session, token }: Extract<Action, { type: 'start' }>): Promise<void> {
    const { api, plan, command } = this.#options;
    await this.#child.ready;
    if (this.#state.kind !== 'starting') return;
    const environment = {
      ...process.env,
      LEASEHOLD_TOKEN: String(token),
      LEASEHOLD_NAME: plan.name,
      LEASEHOLD_URL: api.url,
      LEASEHOLD_SESSION_ID: session,
    };
    this.#child.start({ command, environment, killAt: this.#time.momentOf(this.#killAtMs) });
  }

  #unstartable({ message }: Error): void {
    this.#options.say(`CMD cannot be started: ${message}`);
    this.tell({ type: 'exited', code: EXIT_CANNOT_RUN });
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#child.pid !== null) this.#child.signal(signal);
    // A CMD that was never started is at its end, and will not be started any more.
    else if (!isRequest(signal)) this.tell({ type: 'exited', code: EXIT_SIGNAL + constants.signals[signal] });
  }

  async #close(session: string): Promise<void> {
    const { api, say } = this.#options;
    const untilMs = this.#time.nowMs() + CLOSE_MS_MAX;
    let problem: Problem;
    do {
      problem = await api
        .close(session, { timeoutMs: CLOSE_MS_MAX })
        .then((): Problem => ({ kind: 'refused', code: 'NOT_HELD', message: 'closed' }), problemOf);
      if (problem.kind === 'unreachable') await pause(systemTimers, RETRY_MS);
    } while (problem.kind === 'unreachable' && this.#time.nowMs() < untilMs);
    if (problem.kind === 'unreachable') say(`the lock could not be given back; its TTL frees it`);
    this.tell({ type: 'closed' });
  }

  /** Follows the session's events; they only make things quicker than renewals do, so a stream that breaks is opened again. */
  #listen(session: string): void {
    this.#closeStream.abort();
    this.#closeStream = new AbortController();
    const { signal } = this.#closeStream;
    const follow = async (): Promise<void> => {
      while (!signal.aborted) {
        try {
          await this.#options.api.follow(session, signal, (line) => this.#onLine(line));
        } catch (error) {
          if (error instanceof LeaseholdError && error.code === 'SESSION_EXPIRED') return;
        }
        await pause(systemTimers, RETRY_MS);
      }
    };
    void follow();
  }

  #onLine(line: EventLine): void {
    switch (line.event) {
      case 'queued':
        this.#options.say(`waiting for ${line.name}: position ${line.position}`);
        break;
      case 'revoking':
        this.tell({ type: 'revoking', token: line.token, cause: line.cause });
        break;
      case 'lost':
        this.tell({ type: 'lost', token: line.token, reason: line.reason });
        break;
      case 'session_lost':
        this.tell({ type: 'sessionLost', reason: line.reason });
        break;
      default:
    }
  }
}

function problemOf(error: unknown): Problem {
  if (error instanceof LeaseholdError) {
    const { code, details } = error;
    return { kind: 'refused', code, message: refusalText(error), field: details.field, limit: details.limit };
  }
  if (error instanceof UnavailableError) return { kind: 'unreachable', message: error.message };
  throw error;
}
