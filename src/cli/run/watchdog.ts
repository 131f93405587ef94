/**
 * The watchdog of `leasehold run`: a process of its own that ends CMD when the wrapper cannot, because it was stopped or killed.
 * It needs neither network nor the wrapper's event loop: a pipe tells it deadlines, and the end of the pipe that the wrapper is gone.
 *
 * It is also who lets CMD go: CMD's process waits at a gate whose other end only the watchdog has. So CMD never runs unguarded: before
 * the watchdog knows its process id it has not begun, and if the watchdog dies first, the gate closes and CMD never begins.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { systemTimers } from '../../platform/system-time.ts';
import { isPassed, type Moment, systemMoment } from './lease-time.ts';
import { CONTROL_FD, type FromWatchdog, GATE_FD, listen, type ToWatchdog, tell } from './messages.ts';
import { killGroup, PASSED_SIGNALS } from './process-group.ts';

/** Timers stand still while the machine sleeps, so the clocks are looked at this often. */
const LOOK_EVERY_MS = 100;

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'guarding'; readonly pid: number; readonly killAt: Moment }
  | { readonly kind: 'over' };

const control = new Socket({ fd: CONTROL_FD, readable: true, writable: true });
let state: State = { kind: 'idle' };

// Whoever ends the wrapper by a signal to everybody means CMD to be ended by the wrapper, not to lose its guard.
for (const signal of PASSED_SIGNALS) process.on(signal, () => undefined);

listen<ToWatchdog>(control, onMessage);
control.on('error', () => undefined);
control.once('close', () => process.exit());
// However this process ends, by a fault of its own too, CMD ends with it.
process.once('exit', () => {
  if (state.kind === 'guarding') killGroup(state.pid);
});
answer({ type: 'ready' });

function onMessage(message: ToWatchdog): void {
  switch (message.type) {
    case 'guard':
      state = { kind: 'guarding', pid: message.pid, killAt: message.killAt };
      if (look()) openGate();
      break;
    case 'move':
      // A deadline that has passed is not moved any more.
      if (look() && state.kind === 'guarding') state = { ...state, killAt: message.killAt };
      break;
    case 'done':
      state = { kind: 'over' };
      break;
  }
}

function openGate(): void {
  try {
    writeSync(GATE_FD, 'go\n');
    answer({ type: 'opened' });
  } catch {
    // CMD's process ended at the gate; the wrapper has seen that.
  }
  watch();
}

/** Looks at the clocks for as long as there is something to guard. */
function watch(): void {
  if (look()) systemTimers.after(LOOK_EVERY_MS, watch);
}

/** Whether CMD may go on; otherwise it is dead by now, or was never there. */
function look(): boolean {
  if (state.kind !== 'guarding') return false;
  if (!isPassed(state.killAt, systemMoment())) return true;
  killGroup(state.pid);
  state = { kind: 'over' };
  answer({ type: 'killed' });
  return false;
}

function answer(message: FromWatchdog): void {
  if (!control.destroyed) tell(control, message);
}
