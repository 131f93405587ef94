import { Buffer } from 'node:buffer';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bindSocket, socketPath, socketTarget } from './socket.ts';

/** Of the system this runs on; 107 on Linux. */
const LIMIT = process.platform === 'linux' ? 107 : 103;

let folder = '';
const servers: Server[] = [];

function bind(path: string) {
  const server = new Server();
  servers.push(server);
  return bindSocket(server, path);
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-socket-'));
});

afterEach(() => {
  for (const server of servers.splice(0)) server.forceShutdown();
  rmSync(folder, { recursive: true });
});

test('only its account may connect, and nothing else is left in the folder', async () => {
  const path = join(folder, 'admin.sock');
  const socket = await bind(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['admin.sock']);
  socket.remove();
  expect(readdirSync(folder)).toEqual([]);
});

test('a socket that nobody listens on is replaced; whoever was replaced leaves the new one alone', async () => {
  const path = join(folder, 'admin.sock');
  const old = await bind(path);
  const { ino } = statSync(path);
  await bind(path);
  expect(statSync(path).ino).not.toBe(ino);
  old.remove();
  expect(existsSync(path)).toBe(true);
});

test('a file that is no socket is left alone', async () => {
  const path = join(folder, 'admin.sock');
  writeFileSync(path, 'mine');
  await expect(bind(path)).rejects.toThrow('it is no socket');
  expect(statSync(path).size).toBe(4);
});

test('the limit on a path is the one of the system', async () => {
  const longest = join(folder, 'x'.repeat(LIMIT - Buffer.byteLength(folder) - 1));
  expect(Buffer.byteLength(longest)).toBe(LIMIT);
  expect(socketPath(longest)).toBe(longest);
  const listening = createServer();
  await new Promise<void>((done) => listening.listen(longest, done));
  expect(readdirSync(folder)).toHaveLength(1);
  await new Promise((done) => listening.close(done));
  expect(() => socketPath(`${longest}x`)).toThrow(`takes ${LIMIT}`);
  expect(() => socketPath(`${longest.slice(0, -1)}é`)).toThrow(`has ${LIMIT + 1} bytes`);
});

test('a path below the working directory is written from there, so that a deep checkout does no harm', () => {
  expect(socketTarget(resolve('.leasehold', 'admin.sock'))).toBe('unix:.leasehold/admin.sock');
  expect(socketTarget('.leasehold/admin.sock')).toBe('unix:.leasehold/admin.sock');
});
