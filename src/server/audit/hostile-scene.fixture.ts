/** A leader at work with an exporter beside it, and a sink that does its worst to both. */
import { expect } from 'vitest';
import { acquireCommand, openCommand } from '../../../test/support/core.ts';
import { leadAlone } from '../../../test/support/lone-leader.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { silentAuditMetrics } from '../../platform/metrics.fixture.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import type { Leader } from '../leader/leader.ts';
import { history } from '../snapshots/recovery.ts';
import { AuditExporter } from './exporter.ts';
import type { AuditSink } from './sink.ts';

const HOSTILE_MS = 1_500;
const STOP_MS_MAX = 500;
const RSS_GROWTH_MAX = 128 * 1024 * 1024;

/** What has to be ended when the test is over, the last first. */
export const ends: (() => void | Promise<void>)[] = [];

export async function endAll(): Promise<void> {
  for (const end of ends.splice(0).reverse()) await end();
}

export interface Victim {
  readonly sink: AuditSink;
  /** From now on it takes everything. */
  heal(): unknown;
  /** Indexes of the entries that it has, in the order of their first arrival. */
  indexes(): Iterable<number> | Promise<Iterable<number>>;
  /** It takes only entries that have events. */
  readonly takesEvents?: true;
}

export class Scene {
  readonly store = new MemoryStore('l1');
  readonly told: string[] = [];
  readonly #leader: Leader;
  readonly #session: number;
  readonly #runtime: Runtime;
  #taken = 0;

  private constructor(store: MemoryStore, leader: Leader, session: number, runtime: Runtime) {
    this.store = store;
    this.#leader = leader;
    this.#session = session;
    const tell = (fields: object, message: string): void => {
      this.told.push(`${message}: ${'error' in fields ? String(fields.error) : ''}`);
    };
    this.#runtime = { ...runtime, logger: { debug: tell, info: tell, warn: tell, error: tell } };
  }

  static async make(): Promise<Scene> {
    const runtime = createSystemRuntime({ logLevel: 'silent' });
    const store = new MemoryStore('l1');
    const leader = await leadAlone(store, runtime);
    ends.push(() => leader.stop());
    const [opened] = await leader.submit([openCommand({ ttlMs: 60_000 })]);
    if (opened?.type !== 'opened') throw new Error('no session');
    return new Scene(store, leader, opened.session, runtime);
  }

  get head(): number {
    return this.#leader.position.index;
  }

  /** Of all entries, or of those that have events. */
  async indexes(withEvents: boolean): Promise<number[]> {
    const indexes: number[] = [];
    for await (const { index, events } of history(new MemoryLog(this.store), 1)) {
      if (!withEvents || events.length > 0) indexes.push(index);
    }
    return indexes;
  }

  exporting(sink: AuditSink): AuditExporter {
    const exporter = new AuditExporter({
      runtime: this.#runtime,
      log: new MemoryLog(this.store),
      leadership: this.#leader.leadership,
      group: 'test/jobs',
      sink,
      metrics: { ...silentAuditMetrics, gap: () => expect.unreachable('nothing may be missing') },
      head: () => this.head,
    });
    ends.push(() => exporter.stop());
    return exporter;
  }

  /** Takes and gives back locks for a while; resolves to the times of its commits, ms, rising. */
  async work(forMs: number): Promise<number[]> {
    const times: number[] = [];
    const session = this.#session;
    const commit = async (command: Parameters<Leader['submit']>[0][number]) => {
      const startedMs = performance.now();
      const [result] = await this.#leader.submit([command]);
      times.push(performance.now() - startedMs);
      return result;
    };
    for (const startedMs = performance.now(); performance.now() - startedMs < forMs; ) {
      const key = `k${++this.#taken}`;
      const purpose = 'x'.repeat(500);
      const granted = await commit(acquireCommand({ session, key, name: key, purpose }));
      if (granted?.type !== 'granted') throw new Error('not granted');
      const { token } = granted;
      await commit({ type: 'release', session, attach: 1, name: key, token, key: '', acks: [key] });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return times.sort((a, b) => a - b);
  }
}

const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0;

/** `said`: the one line about it. */
export async function survives({ sink, heal, indexes, takesEvents }: Victim, said: RegExp): Promise<void> {
  const scene = await Scene.make();
  const before = await scene.work(500);
  const rssBytes = process.memoryUsage.rss();
  const exporter = scene.exporting(sink);
  const during = await scene.work(HOSTILE_MS);
  expect(median(during)).toBeLessThan(3 * median(before) + 3);
  // A loop that waits for the sink would stand for as long as it is hostile.
  expect(during.at(-1)).toBeLessThan(0.6 * HOSTILE_MS);
  expect(process.memoryUsage.rss() - rssBytes).toBeLessThan(RSS_GROWTH_MAX);
  expect(exporter.lag.lagEntries).toBe(scene.head);
  expect(scene.store.auditCursor()).toBe(0);
  expect(scene.told).toHaveLength(1);
  expect(scene.told[0]).toMatch(said);
  const stoppingMs = performance.now();
  exporter.stop();
  await sink.close();
  expect(performance.now() - stoppingMs).toBeLessThan(STOP_MS_MAX);
  await heal();
  scene.exporting(sink);
  const wanted = await scene.indexes(takesEvents === true);
  await expect.poll(async () => [...(await indexes())], { timeout: 20_000 }).toEqual(wanted);
}

export function indexesIn(lines: readonly string[]): Iterable<number> {
  return new Set(lines.map((line) => (JSON.parse(line) as { readonly index: number }).index));
}
