/**
 * The HTTP API of a real `leasehold dev` process: what a service on the same machine sees.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { type OpenLoopOptions, openLoop, type Summary } from './measure.ts';

const MANIFEST = `
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: bench, namespace: bench}
spec:
  safety: {class: Efficiency}
  limits: {operationsPerSecond: 1000000, perClient: {locks: 100000, operationsPerSecond: 1000000}}
`;

/** A `leasehold dev` process of its own, and one session in it. */
export class SidecarHttp implements AsyncDisposable {
  readonly #post: Post;
  readonly #session: unknown;
  readonly #end: () => Promise<void>;

  private constructor(post: Post, session: unknown, end: () => Promise<void>) {
    this.#post = post;
    this.#session = session;
    this.#end = end;
  }

  static async start(): Promise<SidecarHttp> {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
    writeFileSync(join(folder, 'bench.yaml'), MANIFEST);
    const main = new URL('../src/cli/main.ts', import.meta.url).pathname;
    const paths = ['-f', join(folder, 'bench.yaml'), '--data', join(folder, 'data')];
    const stdio = ['ignore', 'pipe', 'inherit'] as const;
    const server = spawn(process.execPath, [main, 'dev', '--port', '0', ...paths], { stdio: [...stdio] });
    const agent = new Agent({ connections: 64 });
    const end = async (): Promise<void> => {
      await agent.close();
      if (server.exitCode === null && server.kill('SIGTERM')) await once(server, 'exit');
      rmSync(folder, { recursive: true, force: true });
    };
    try {
      const post = postTo(await addressOf(server), agent);
      const { session_id } = await post('/v1/sessions', { client: 'bench', keepalive: 'app', ttl_s: 60 });
      return new SidecarHttp(post, session_id, end);
    } catch (error) {
      await end();
      throw error;
    }
  }

  /** Acquire and release at a fixed rate; an operation is one call. */
  async measure({ perSecond, ...duration }: OpenLoopOptions): Promise<Summary> {
    const session_id = this.#session;
    const held: Promise<unknown>[] = [];
    const acquires = await openLoop({ perSecond: perSecond / 2, ...duration }, async (turn) => {
      const lock = `/v1/locks/bench%2Fn-${turn}`;
      const { token } = await this.#post(`${lock}/acquire`, { session_id });
      held.push(this.#post(`${lock}/release`, { session_id, token }));
    });
    await Promise.all(held);
    return { ...acquires, perSecond: 2 * acquires.perSecond };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}

type Post = (path: string, body: object) => Promise<Record<string, unknown>>;

function postTo(url: string, dispatcher: Agent): Post {
  const headers = { 'content-type': 'application/json' };
  return async (path, body) => {
    const answer = await request(url + path, {
      method: 'POST',
      dispatcher,
      headers,
      body: JSON.stringify(body),
    });
    const parsed = (await answer.body.json()) as Record<string, unknown>;
    if (answer.statusCode !== 200) throw new Error(JSON.stringify(parsed));
    return parsed;
  };
}

function addressOf(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    server.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const address = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0];
      if (address !== undefined) resolve(address);
    });
    server.once('exit', (code) => reject(new Error(`leasehold dev ended with ${code}: ${text}`)));
  });
}
