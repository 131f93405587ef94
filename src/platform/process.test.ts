/** What the operating system's process table says of a process that is being killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { startOf } from './process.ts';

const ROUNDS = 8;
/** Holds a port, and has threads with memory of their own, which take a while to end. */
const LISTENS = `
  const { Worker } = require('node:worker_threads');
  for (let at = 0; at < 4; at++) new Worker('setInterval(() => {}, 1000); globalThis.kept = Array(3e6).fill(1)', { eval: true });
  const server = require('node:net').createServer().listen(0, '127.0.0.1', () => setTimeout(() => console.log(server.address().port), 300));
`;

test('a process is there until its last thread has ended: then its port is free', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const child = spawn(process.execPath, ['--eval', LISTENS], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const pid = child.pid ?? 0;
    expect(startOf(pid)).not.toBeNull();
    child.kill('SIGKILL');
    // Not by waiting for it: whoever looks is not its parent.
    while (startOf(pid) !== null);
    const server = createServer().listen(Number(String(line)), '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await ended;
  }
}, 60_000);
