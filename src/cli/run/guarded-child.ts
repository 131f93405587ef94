/**
 * CMD and its watchdog, seen from the wrapper.
 *
 * CMD is started as a shell that waits for a line on its standard input, which is the gate, and then becomes CMD with the real standard
 * input. Both processes are leaders of sessions of their own, so what the terminal sends to its foreground group (Ctrl-C) reaches only
 * the wrapper, which passes it on.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { assert } from '../../core/assert.ts';
import { EXIT_SIGNAL } from '../conventions.ts';
import type { Moment } from './lease-time.ts';
import { CONTROL_FD, type FromWatchdog, GATE_FD, listen, tell } from './messages.ts';
import { clearGroup, signalGroup } from './process-group.ts';

const WATCHDOG = import.meta.url.endsWith('.ts')
  ? new URL('./watchdog.ts', import.meta.url)
  : new URL('./watchdog.js', import.meta.url);
/** Without the line (the gate closed) CMD never begins. */
const WAIT_AT_GATE = 'read -r go && exec "$@" <&3 3<&-';
const STDIN_FD = 0;
/** How long killed processes may take to be gone; dead ones that nobody collects are waited for no longer. */
const CLEAR_MS_MAX = 1_000;

export interface ChildEvents {
  /** CMD was let go. */
  readonly onStarted: () => void;
  /** `code` as a shell tells it: 128 + n for signal n. */
  readonly onExited: (code: number) => void;
  /** There is no process that could become CMD. */
  readonly onUnstartable: (error: Error) => void;
  readonly onWatchdogKilled: () => void;
  readonly onWatchdogDied: () => void;
}

export interface Start {
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly killAt: Moment;
}

export class GuardedChild {
  /** The watchdog is there. */
  readonly ready: Promise<void>;
  readonly #watchdog: ChildProcess;
  readonly #events: ChildEvents;
  #child: ChildProcess | null = null;
  #isOver = false;

  /** Starts the watchdog; CMD comes later. */
  constructor(events: ChildEvents) {
    this.#events = events;
    this.#watchdog = spawn(process.execPath, [fileURLToPath(WATCHDOG)], {
      detached: true,
      // What is set for programs of the user must not change this one.
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const died = (): void => {
      if (!this.#isOver) events.onWatchdogDied();
    };
    this.#watchdog.once('exit', died);
    this.#watchdog.once('error', died);
    this.ready = new Promise((resolve) => {
      listen<FromWatchdog>(this.#control, (message) => {
        if (message.type === 'ready') resolve();
        else if (message.type === 'opened') events.onStarted();
        else events.onWatchdogKilled();
      });
    });
    for (const fd of [CONTROL_FD, GATE_FD]) this.#pipe(fd).on('error', () => undefined);
  }

  /** Process id of CMD, which is also that of its group. */
  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Starts CMD; it waits at the gate until the watchdog has looked at the clock. */
  start({ command, environment, killAt }: Start): void {
    assert(this.#child === null, 'CMD is started once');
    assert(command.length > 0, 'there is a CMD');
    const gate = this.#pipe(GATE_FD);
    let child: ChildProcess;
    try {
      child = spawn('/bin/sh', ['-c', WAIT_AT_GATE, 'leasehold run', ...command], {
        detached: true,
        env: environment,
        stdio: [gate, 'inherit', 'inherit', STDIN_FD],
      });
    } catch (error) {
      // Too little memory, or too long an environment: of some errors Node.js makes no event.
      this.#events.onUnstartable(error as Error);
      return;
    } finally {
      // This process must not hold the gate open, nor take the line that is meant for CMD.
      gate.destroy();
    }
    this.#child = child;
    child.once('error', this.#events.onUnstartable);
    child.once('exit', (code, signal) => {
      this.#events.onExited(code ?? EXIT_SIGNAL + (signal === null ? 0 : constants.signals[signal]));
    });
    const { pid } = child;
    if (pid !== undefined) tell(this.#control, { type: 'guard', pid, killAt });
  }

  moveDeadline(killAt: Moment): void {
    tell(this.#control, { type: 'move', killAt });
  }

  /** To all processes of CMD. */
  signal(signal: NodeJS.Signals): void {
    if (this.pid !== null) signalGroup(this.pid, signal);
  }

  /** Ends what CMD has left behind; resolves when it is gone, so far as that can be seen. */
  async clear(): Promise<void> {
    if (this.pid !== null) await clearGroup(this.pid, CLEAR_MS_MAX);
    tell(this.#control, { type: 'done' });
  }

  /** The watchdog goes too. */
  end(): void {
    this.#isOver = true;
    this.#control.destroy();
  }

  get #control(): Duplex {
    return this.#pipe(CONTROL_FD);
  }

  #pipe(fd: number): Duplex {
    const pipe = this.#watchdog.stdio[fd];
    assert(pipe !== null && pipe !== undefined && 'write' in pipe && 'read' in pipe, `fd ${fd} is a pipe`);
    return pipe as Duplex;
  }
}
