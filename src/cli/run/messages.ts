/** What `leasehold run` and its watchdog tell each other: one JSON object a line. */
import type { Readable, Writable } from 'node:stream';
import type { Moment } from './lease-time.ts';

/** Of the watchdog's file descriptors: where it listens and answers, and the gate that CMD waits at. */
export const CONTROL_FD = 3;
export const GATE_FD = 4;

export type ToWatchdog =
  /** CMD waits at the gate: let it go if there is time left, and kill its process group at `killAt`. */
  | { readonly type: 'guard'; readonly pid: number; readonly killAt: Moment }
  | { readonly type: 'move'; readonly killAt: Moment }
  /** Nothing of CMD is left. */
  | { readonly type: 'done' };

export type FromWatchdog =
  | { readonly type: 'ready' }
  /** CMD was let go. */
  | { readonly type: 'opened' }
  /** `killAt` has passed, and the process group was killed. */
  | { readonly type: 'killed' };

export function tell(to: Writable, message: ToWatchdog | FromWatchdog): void {
  to.write(`${JSON.stringify(message)}\n`);
}

/** Calls `onMessage` for each message that arrives. Only the other half of this pair writes to the stream. */
export function listen<Message extends ToWatchdog | FromWatchdog>(
  from: Readable,
  onMessage: (message: Message) => void,
): void {
  let rest = '';
  from.setEncoding('utf8').on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onMessage(JSON.parse(line) as Message);
  });
}
