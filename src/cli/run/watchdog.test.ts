/** The watchdog of `leasehold run`, alone: a process of its own, told what the wrapper would tell it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { GuardedChild } from './guarded-child.ts';
import { CONTROL_FD, type FromWatchdog, listen, tell } from './messages.ts';
import { PASSED_SIGNALS } from './process-group.ts';

/** A new process of Node.js on a busy machine. */
const ANSWER_MS_MAX = 20_000;

test('signals that somebody sends to everybody do not cost CMD its guard', async () => {
  const watchdog = startWatchdog();
  const command = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  const ended = once(command, 'exit');
  await vi.waitFor(() => expect(watchdog.heard).toEqual(['ready']), ANSWER_MS_MAX);
  for (const signal of PASSED_SIGNALS) watchdog.process.kill(signal);
  const past = { monotonicMs: 0, uptimeMs: 0 };
  tell(watchdog.control, { type: 'guard', pid: command.pid ?? 0, killAt: past });
  await vi.waitFor(() => expect(watchdog.heard).toEqual(['ready', 'killed']), ANSWER_MS_MAX);
  expect(await ended).toEqual([null, 'SIGKILL']);
  watchdog.control.destroy();
});

test('a CMD for which no process can be made is told as such', async () => {
  const heard: string[] = [];
  const child = new GuardedChild({
    onStarted: () => heard.push('started'),
    onExited: (code) => heard.push(`exited ${code}`),
    onUnstartable: ({ message }) => heard.push(message),
    onWatchdogKilled: () => heard.push('killed'),
    onWatchdogDied: () => heard.push('died'),
  });
  await child.ready;
  // More than any system passes on.
  const environment = { TOO_LONG: 'x'.repeat(4 * 1024 * 1024) };
  child.start({ command: ['true'], environment, killAt: { monotonicMs: Infinity, uptimeMs: Infinity } });
  expect(heard).toEqual(['spawn E2BIG']);
  expect(child.pid).toBeNull();
  await child.clear();
  child.end();
});

function startWatchdog(): { process: ChildProcess; control: Duplex; heard: string[] } {
  const process_ = spawn(process.execPath, [fileURLToPath(new URL('./watchdog.ts', import.meta.url))], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  });
  const control = process_.stdio[CONTROL_FD] as Duplex;
  const heard: string[] = [];
  listen<FromWatchdog>(control, ({ type }) => heard.push(type));
  return { process: process_, control, heard };
}
