/**
 * A lock as applications build it on one Redis: `SET NX PX`, and a script that deletes the key if it is still one's own. Nothing is on
 * disk and nobody queues. Commands are written by hand into few connections, so that no client library stands in the peer's way.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { atEnd } from '../endings.ts';

const RELEASE =
  "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const CONNECTIONS = 8;
const TTL_MS = '60000';
const START_MS_MAX = 5_000;
const POLL_MS = 20;

export class Redis implements AsyncDisposable {
  readonly #ending: AsyncDisposable;
  readonly #connections: Connection[] = [];
  #next = 0;

  private constructor(ending: AsyncDisposable) {
    this.#ending = ending;
  }

  /** Rejects when Redis is not installed. */
  static async start(): Promise<Redis> {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
    const path = join(folder, 'redis.sock');
    const args = ['--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no', '--dir', folder];
    const child = spawn('redis-server', args, { stdio: 'ignore' });
    const failed = once(child, 'error').then(([error]) => {
      throw new Error(
        `redis-server cannot be started (Debian: apt-get install redis-server): ${String(error)}`,
      );
    });
    const redis = new Redis(
      atEnd(async () => {
        for (const connection of redis.#connections) connection.close();
        if (child.pid !== undefined && child.exitCode === null) {
          child.kill('SIGTERM');
          await once(child, 'exit');
        }
        rmSync(folder, { recursive: true, force: true });
      }),
    );
    try {
      await Promise.race([failed, redis.#connect(path)]);
    } catch (error) {
      await redis[Symbol.asyncDispose]();
      throw error;
    }
    return redis;
  }

  /** True when the lock was free. */
  async take(name: string, owner: string): Promise<boolean> {
    return (await this.#command('SET', name, owner, 'NX', 'PX', TTL_MS)) === '+OK';
  }

  async release(name: string, owner: string): Promise<void> {
    const answer = await this.#command('EVAL', RELEASE, '1', name, owner);
    if (answer !== ':1') throw new Error(`the lock was not ours any more: ${answer}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#ending[Symbol.asyncDispose]());
  }

  async #connect(path: string): Promise<void> {
    const deadline = Date.now() + START_MS_MAX;
    while (this.#connections.length < CONNECTIONS) {
      try {
        this.#connections.push(await Connection.open(path));
      } catch (error) {
        if (Date.now() > deadline) throw error;
        await pause(POLL_MS);
      }
    }
  }

  #command(...words: readonly string[]): Promise<string> {
    return (this.#connections[this.#next++ % CONNECTIONS] as Connection).send(words);
  }
}

/** One connection: answers come in the order of the commands. Of its protocol only what these commands need. */
class Connection {
  readonly #socket: Socket;
  readonly #waiting: ((answer: string) => void)[] = [];
  #first = 0;
  #rest = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('latin1').on('data', (data: string) => this.#receive(data));
    socket.on('error', () => undefined);
  }

  static async open(path: string): Promise<Connection> {
    const socket = createConnection(path);
    await once(socket, 'connect');
    return new Connection(socket);
  }

  send(words: readonly string[]): Promise<string> {
    const command = words.map((word) => `$${word.length}\r\n${word}\r\n`).join('');
    this.#socket.write(`*${words.length}\r\n${command}`);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(data: string): void {
    const lines = (this.#rest + data).split('\r\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#waiting[this.#first++]?.(line);
    if (2 * this.#first < this.#waiting.length) return;
    this.#waiting.splice(0, this.#first);
    this.#first = 0;
  }
}
