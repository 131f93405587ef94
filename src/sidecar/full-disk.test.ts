/**
 * A sidecar that cannot write its state file (rule A4): it ended with the first mark it could not keep, and again with every start, which cost the
 * pod all its locks. What is held goes on, nothing new is begun, and what happened meanwhile is on disk once that is possible.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Pod, TTL_MS } from '../../test/support/virtual/pod.ts';
import { FileStateStore } from './state-file.ts';
import { MemoryStateStore, type SidecarRecord } from './state-store.ts';

class FullStore extends MemoryStateStore {
  isFull = false;

  override get problem(): string | null {
    return this.isFull ? 'no space left on device' : null;
  }
}

test('what is held is kept and given back, nothing new is taken, and all is well with the disk', async () => {
  const pod = await Pod.start();
  const store = new FullStore();
  pod.store = store;
  await pod.restart();
  const { sessionId, token } = await pod.holding('a');
  const other = await pod.acquire('b', { sessionId });
  const waiting = pod.acquiring('b', { sessionId: await pod.open(), waitMs: 60_000 });
  await pod.runtime.pass(100);

  store.isFull = true;
  await pod.runtime.pass(3 * TTL_MS);
  expect(pod.held('a', token).held).toBe(true);
  expect(await pod.release('b', sessionId, other.token)).toEqual({ already: false });
  const refused = await pod.refusal(pod.acquiring('c', { sessionId }).granted);
  expect(refused).toMatchObject({ code: 'UNAVAILABLE' });
  expect(refused.message).toContain('cannot write its state file (no space left on device)');
  expect((await pod.refusal(pod.acquiring('c').granted)).code).toBe('UNAVAILABLE');
  expect((await pod.refusal(pod.open())).code).toBe('UNAVAILABLE');
  expect(pod.sidecar.problems()).toHaveLength(1);
  expect((await pod.jobs.lock('c')).holderCount).toBe(0);

  store.isFull = false;
  expect(pod.sidecar.problems()).toEqual([]);
  expect((await pod.acquire('c', { sessionId })).token).toBeGreaterThan(token);
  expect(waiting.outcome.value).not.toBeNull();
});

const envelope: SidecarRecord = {
  ...{ type: 'envelope', id: 'e', client: 'c', ttlMs: 15_000, isTtlChosen: true },
  ...{ keepalive: 'app', maxHoldMs: 0, isSingle: false },
};
const grant = (token: number): SidecarRecord => ({
  ...{ type: 'grant', envelope: 'e', alias: 'jobs', name: 'n'.repeat(500), mode: 'exclusive', permits: 1 },
  ...{ owner: '', reentrant: false, token, key: `k${token}`, request: null },
});

test('a file on a disk that is full says so, starts with what is there, and holds everything once there is room', (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-full-'));
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=128k', 'none', disk], { stdio: 'ignore' });
  } catch {
    rmSync(folder, { recursive: true });
    context.skip('only root can mount a small disk');
  }
  const path = join(disk, 'sidecar.jsonl');
  const filler = join(disk, 'filler');
  const fill = (): void => {
    try {
      writeFileSync(filler, Buffer.alloc(256 * 1024));
    } catch {
      // It takes what there is.
    }
  };
  try {
    const first = new FileStateStore(path);
    first.put(envelope);
    first.put(grant(1));
    expect(first.problem).toBeNull();
    fill();
    for (let token = 2; token <= 40; token++) first.put(grant(token));
    first.remove({ type: 'grant', envelope: 'e', alias: 'jobs', key: 'k1' });
    expect(first.problem).toContain('ENOSPC');
    expect(first.load()).toHaveLength(40);

    // A restart goes on with what is on the disk, which is behind, and nothing half.
    const second = new FileStateStore(path);
    const [head, ...grants] = second.load();
    expect(head).toEqual(envelope);
    expect(grants.length).toBeGreaterThan(0);
    for (const kept of grants) expect(kept).toMatchObject({ type: 'grant', name: 'n'.repeat(500) });
    expect(second.problem).toContain('ENOSPC');
    second.close();

    rmSync(filler);
    expect(first.problem).toBeNull();
    first.close();
    const third = new FileStateStore(path);
    expect(third.load()).toEqual(first.load());
    expect(statSync(path).mode & 0o777).toBe(0o600);
    third.close();
  } finally {
    execFileSync('umount', ['-l', disk]);
    rmSync(folder, { recursive: true });
  }
});
