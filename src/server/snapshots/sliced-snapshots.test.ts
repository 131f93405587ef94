/**
 * A leader without standbys that writes a large snapshot itself: its loop never stands still for long (rule S6 counts from 500 ms on), and
 * what it has written is the state at one index, though everything went on changing meanwhile (rule L3).
 */
import { expect, test } from 'vitest';
import { acquireCommand, namespaceConfig, openCommand, traceOf } from '../../../test/support/core.ts';
import { leadAlone } from '../../../test/support/lone-leader.ts';
import type { Command } from '../../api/entry.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import type { Leader } from '../leader/leader.ts';
import { recover } from './recovery.ts';
import { chunksOf } from './snapshot-chunks.ts';

const runtime = createSystemRuntime({ logLevel: 'silent' });
const LOCKS = 200_000;
const LOCKS_PER_SESSION = 200;

/** Processor time of this thread: what else this machine does meanwhile is not in it. */
function ownMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function ownTimeOf(work: () => unknown): number {
  const startedMs = ownMs();
  work();
  return ownMs() - startedMs;
}

/** The longest time that this thread was busy without a turn for others. */
class Stalls {
  #lastMs = ownMs();
  #worstMs = 0;
  readonly #ticking = setInterval(() => {
    const now = ownMs();
    this.#worstMs = Math.max(this.#worstMs, now - this.#lastMs);
    this.#lastMs = now;
  }, 1);

  end(): number {
    clearInterval(this.#ticking);
    return this.#worstMs;
  }
}

class Scene {
  readonly store: MemoryStore;
  readonly leader: Leader;
  #taken = 0;

  private constructor(store: MemoryStore, leader: Leader) {
    this.store = store;
    this.leader = leader;
  }

  static async start(own: Runtime = runtime): Promise<Scene> {
    const store = new MemoryStore('l1');
    const config = namespaceConfig({ sessions: 5_000, heldLocks: 1_000_000, locksPerClient: 1_000_000 });
    return new Scene(store, await leadAlone(store, own, { config }));
  }

  /** Takes so many locks, which stay held. */
  async hold(count: number): Promise<void> {
    for (let left = count; left > 0; left -= LOCKS_PER_SESSION) {
      const [open] = await this.leader.submit([openCommand({ ttlMs: 60_000 })]);
      if (open?.type !== 'opened') throw new Error('no session');
      const { session } = open;
      const commands: Command[] = Array.from({ length: Math.min(left, LOCKS_PER_SESSION) }, () => {
        const key = `k${++this.#taken}`;
        return acquireCommand({ session, key, name: `jobs/nightly/${key}`, purpose: '' });
      });
      const results = await this.leader.submit(commands);
      expect(results.every(({ type }) => type === 'granted')).toBe(true);
    }
  }
}

test('200,000 locks: no stall, and a snapshot of one index while locks come and go', async () => {
  const scene = await Scene.start();
  const { leader, store } = scene;
  await scene.hold(LOCKS);
  const onePassMs = ownTimeOf(() => [...chunksOf(leader.state)]);
  const startedMs = performance.now();
  const stalls = new Stalls();
  leader.demandSnapshot();
  const commits: number[] = [];
  while (store.snapshots().length === 0) {
    const sentMs = performance.now();
    await scene.hold(1);
    commits.push(performance.now() - sentMs);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  const worstMs = stalls.end();
  commits.sort((a, b) => a - b);
  const figures = {
    locks: LOCKS,
    onePassMs,
    slicesTookMs: performance.now() - startedMs,
    worstMs,
    commits: commits.length,
    medianCommitMs: commits[Math.floor(commits.length / 2)],
  };
  console.log(JSON.stringify(figures));
  expect(worstMs).toBeLessThan(0.4 * onePassMs);
  const [manifest] = store.snapshots();
  expect(manifest?.index).toBeLessThan(leader.position.index);
  const recovered = await recover(new MemoryLog(store), runtime.logger);
  expect(recovered.snapshot).toEqual(manifest);
  expect(traceOf(recovered.state)).toEqual(traceOf(leader.state));
  await leader.stop();
}, 120_000);

test('a leader that stops in the middle commits none, replays no further, and calls that no failure', async () => {
  const errors: string[] = [];
  const logger = { ...runtime.logger, error: (_: object, message: string) => void errors.push(message) };
  const scene = await Scene.start({ ...runtime, logger });
  const { leader, store } = scene;
  await scene.hold(20_000);
  leader.demandSnapshot();
  await scene.hold(1);
  expect(store.openedSnapshot()).not.toBeNull();
  await leader.stop();
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(store.snapshots()).toEqual([]);
  expect(errors).toEqual([]);
}, 60_000);
