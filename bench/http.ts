/**
 * The HTTP API of a real `leasehold dev` process: what a service on the same machine sees.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { openLoop, type Summary } from './measure.ts';

const MANIFEST = `
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: bench, namespace: bench}
spec:
  safety: {class: Efficiency}
  limits: {operationsPerSecond: 1000000, perClient: {locks: 100000, operationsPerSecond: 1000000}}
`;

/** Acquire and release by HTTP in one session at a fixed rate; an operation is one call. */
export async function sidecarHttp(perSecond: number, seconds: number): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
  writeFileSync(join(folder, 'bench.yaml'), MANIFEST);
  const main = new URL('../src/cli/main.ts', import.meta.url).pathname;
  const args = [main, 'dev', '-f', join(folder, 'bench.yaml'), '--port', '0', '--data', join(folder, 'data')];
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const agent = new Agent({ connections: 64 });
  try {
    const url = await addressOf(server);
    const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await request(url + path, {
        method: 'POST',
        dispatcher: agent,
        headers,
        body: JSON.stringify(body),
      });
      const parsed = (await answer.body.json()) as Record<string, unknown>;
      if (answer.statusCode !== 200) throw new Error(JSON.stringify(parsed));
      return parsed;
    };
    const { session_id } = await post('/v1/sessions', { client: 'bench', keepalive: 'app', ttl_s: 60 });
    const held: Promise<unknown>[] = [];
    const acquires = await openLoop({ perSecond: perSecond / 2, seconds }, async (turn) => {
      const lock = `/v1/locks/bench%2Fn-${turn}`;
      const { token } = await post(`${lock}/acquire`, { session_id });
      held.push(post(`${lock}/release`, { session_id, token }));
    });
    await Promise.all(held);
    return { ...acquires, perSecond: 2 * acquires.perSecond };
  } finally {
    await agent.close();
    server.kill('SIGTERM');
    await new Promise((resolve) => server.once('exit', resolve));
    rmSync(folder, { recursive: true, force: true });
  }
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
