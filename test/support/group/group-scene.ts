/**
 * A group under load for tests that do something to it: sessions that hold locks over everything, sessions that pass one lock from hand to
 * hand, one session on each sidecar that asks for new locks. After each thing that was done: is all of it intact, and does the whole
 * committed history keep every promise?
 */
import { expect } from 'vitest';
import { HistoryChecker } from '../../../src/history/checker.ts';
import { type BenchOptions, ETCDS, GroupBench, SERVERS } from './group-bench.ts';
import { GroupClients } from './group-clients.ts';

const KEEPERS = 9;
const WAITERS = 6;
/** A lease of a server that was killed runs out by then. */
const LEASES_SETTLE_MS_MAX = 10_000;

export interface SceneOptions extends BenchOptions {
  readonly ttlMs: number;
}

export class GroupScene {
  readonly bench: GroupBench;
  readonly clients: GroupClients;
  readonly #probes: readonly string[];
  #probed = 0;

  private constructor(bench: GroupBench, clients: GroupClients, probes: readonly string[]) {
    this.bench = bench;
    this.clients = clients;
    this.#probes = probes;
  }

  static async start(options: SceneOptions): Promise<GroupScene> {
    const bench = await GroupBench.start(options);
    try {
      const endpoints = options.isProxied === true ? await proxiedWays(bench) : undefined;
      const { ttlMs } = options;
      const clients = new GroupClients(bench, { ttlMs, ...(endpoints !== undefined && { endpoints }) });
      const probes: string[] = [];
      for (const at of SERVERS.keys()) probes.push(await clients.open(at, `probe-${at}`));
      await clients.keep(KEEPERS);
      await clients.passHot(WAITERS);
      return new GroupScene(bench, clients, probes);
    } catch (error) {
      await bench.end();
      throw error;
    }
  }

  /** Time from `sinceMs` until the first of these sidecars has had something granted anew; all of them must. */
  async firstGrant(sinceMs: number, sidecars: readonly number[] = [...SERVERS.keys()]): Promise<number> {
    const times = sidecars.map(async (sidecar) => {
      const session = this.#probes[sidecar] as string;
      const name = `probe-${sidecar}/${++this.#probed}`;
      const { token } = await this.clients.acquire(sidecar, session, name);
      const tookMs = performance.now() - sinceMs;
      await this.clients.release(sidecar, session, { name, token });
      return tookMs;
    });
    return Math.round(Math.min(...(await Promise.all(times))));
  }

  /** Nothing that live clients had is lost, the load goes on, and the history up to now keeps all promises (FIFO is one of them). */
  async expectIntact(): Promise<void> {
    expect(await this.clients.lost()).toEqual([]);
    expect(this.clients.complaints).toEqual([]);
    const before = this.clients.hotGrants;
    await expect.poll(() => this.clients.hotGrants, { timeout: 10_000 }).toBeGreaterThan(before + WAITERS);
    await this.expectPromisesKept();
    await this.expectLeasesFlat();
  }

  /**
   * One etcd lease for each lock server that has campaigned, and not one more (case I08); as many streams at most (case I09). A lease of a
   * server that was killed takes its time to run out.
   */
  async expectLeasesFlat(): Promise<void> {
    const over = async () => {
      const all = await Promise.all(ETCDS.map((name) => this.bench.etcd(name).figures()));
      const streams = all.reduce((sum, figures) => sum + figures.streams, 0);
      return [...all.map(({ leases }) => leases), streams].filter((n) => n < 1 || n > SERVERS.length);
    };
    await expect.poll(over, { timeout: LEASES_SETTLE_MS_MAX, interval: 200 }).toEqual([]);
  }

  async end(): Promise<void> {
    await this.clients.end();
    await this.bench.end();
  }

  /** Of safety: the whole history, and every grant that was told is in it. */
  async expectPromisesKept(): Promise<void> {
    const told = [...this.clients.told];
    const checker = new HistoryChecker();
    const granted = new Map<number, string>();
    for (const entry of await this.bench.history()) {
      checker.entry(entry, entry.wallMs);
      for (const event of entry.events) if (event.type === 'granted') granted.set(event.token, event.name);
    }
    const { violations } = checker.finish();
    expect(violations.map(({ property, message }) => `${property}: ${message}`)).toEqual([]);
    expect(told.filter(({ name, token }) => granted.get(token) !== name)).toEqual([]);
  }
}

/** Each sidecar with a proxied way of its own to each front end, known as `sidecar-1` and so on. */
function proxiedWays({ net, group }: GroupBench): Promise<string[][]> {
  const { endpoints } = group.plan;
  const ways = SERVERS.map((_, sidecar) =>
    Promise.all(
      endpoints.map((address, at) => net.link(`sidecar-${sidecar + 1}`, SERVERS[at] as string, address)),
    ),
  );
  return Promise.all(ways);
}
