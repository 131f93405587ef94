/**
 * A lock group as it is run: three etcd members that sync every commit to disk, three lock servers, each a process of its own.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { ensureEtcd } from '../scripts/etcd.mjs';
import { LocalGroup } from '../src/cli/group/local-group.ts';
import { MEMBERS } from '../src/cli/group/plan.ts';
import type { MemberStatus } from '../src/server/member/member-status.ts';
import { atEnd } from './endings.ts';
import { type Processes, processorMs } from './processor-time.ts';

const SERVERS = MEMBERS.map((name) => `server-${name}`);
const ETCDS = MEMBERS.map((name) => `etcd-${name}`);
const LEADER_MS_MAX = 30_000;
const POLL_MS = 10;
/** The log grows while one catches up. */
const LAG_MAX = 5;

const SUSPICIOUS = { suspicion: { silenceMs: 400, everyMs: 1_000 } };

/** Limits out of the way: what is measured is the service, not its brakes. */
const MANIFEST = {
  apiVersion: 'leasehold.dev/v1alpha1',
  kind: 'LockNamespace',
  metadata: { name: 'bench', namespace: 'bench' },
  spec: {
    safety: { class: 'Efficiency' },
    lease: { ttl: '60s' },
    queue: { maxWaiters: 10_000 },
    limits: {
      sessions: 20_000,
      heldLocks: 1_000_000,
      operationsPerSecond: 1_000_000,
      perClient: { locks: 100_000, operationsPerSecond: 1_000_000 },
    },
  },
};

export class Cluster {
  readonly #group: LocalGroup;
  readonly #folder: string;
  readonly #ending: AsyncDisposable;

  private constructor(group: LocalGroup, folder: string) {
    this.#group = group;
    this.#folder = folder;
    this.#ending = atEnd(async () => {
      await group.stop();
      rmSync(folder, { recursive: true, force: true });
    });
  }

  /** `isKilledOften`: no standby waits for long before it suspects a leader again, since the kills are the bench's. */
  static async start({ isKilledOften = false } = {}): Promise<Cluster> {
    const etcd = await ensureEtcd();
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'));
    const group = await LocalGroup.make({
      folder,
      alias: 'bench',
      manifest: stringify(MANIFEST),
      etcd,
      node: process.execPath,
      leasehold: join(import.meta.dirname, '../src/cli/main.ts'),
      server: { logLevel: 'warn', ...(isKilledOften ? SUSPICIOUS : {}) },
    });
    const cluster = new Cluster(group, folder);
    try {
      await group.start(ETCDS);
      await group.start(SERVERS);
      await cluster.leader();
    } catch (error) {
      console.error(cluster.logs());
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#ending[Symbol.asyncDispose]());
  }

  /** Client addresses of the lock servers, by place. */
  get endpoints(): readonly string[] {
    return this.#group.plan.endpoints;
  }

  /** etcd's client URLs, the one beside server `at` first. */
  etcdsFrom(at: number): readonly string[] {
    const { etcdEndpoints } = this.#group.plan;
    return [...etcdEndpoints.slice(at), ...etcdEndpoints.slice(0, at)];
  }

  get etcdEndpoints(): readonly string[] {
    return this.#group.plan.etcdEndpoints;
  }

  /** Place of the server that leads, once one says so. */
  async leader(except = -1): Promise<number> {
    const deadline = performance.now() + LEADER_MS_MAX;
    while (performance.now() < deadline) {
      for (const at of SERVERS.keys()) {
        if (at !== except && (await this.status(at))?.role === 'leading') return at;
      }
      await pause(POLL_MS);
    }
    throw new Error(`nobody leads:\n${this.logs()}`);
  }

  /** Null: it does not answer. */
  async status(at: number): Promise<MemberStatus | null> {
    const name = SERVERS[at] as string;
    return this.#group.pidOf(name) === null ? null : ((await this.#group.probe(name)) as MemberStatus | null);
  }

  /** Until server `at` follows, and has applied what the log holds: milliseconds since `sinceMs`, monotonic. */
  async caughtUp(at: number, limitMs: number, sinceMs: number): Promise<number> {
    while (performance.now() - sinceMs < limitMs) {
      const status = await this.status(at);
      if (status !== null && status.role !== 'starting' && status.lag <= LAG_MAX)
        return performance.now() - sinceMs;
      await pause(POLL_MS);
    }
    throw new Error(`a server has not caught up:\n${this.logs()}`);
  }

  signal(at: number, signal: NodeJS.Signals): void {
    this.#group.signal(SERVERS[at] as string, signal);
  }

  /** Waits until that server has ended, and starts it again. */
  async restart(at: number): Promise<void> {
    const name = SERVERS[at] as string;
    await this.#group.ended(name, 10_000);
    await this.#group.start([name]);
  }

  /** Place of the etcd member that leads. */
  async etcdLeader(): Promise<number> {
    const deadline = performance.now() + LEADER_MS_MAX;
    while (performance.now() < deadline) {
      for (const [at, endpoint] of this.etcdEndpoints.entries()) {
        const status = await etcdStatus(endpoint);
        if (status !== null && status.leader === status.header.member_id) return at;
      }
      await pause(POLL_MS);
    }
    throw new Error('no member of etcd leads');
  }

  /** Makes the etcd member beside server `at` lead etcd. */
  async moveEtcdLeader(at: number): Promise<void> {
    const from = await this.etcdLeader();
    if (from === at) return;
    const target = await etcdStatus(this.etcdEndpoints[at] as string);
    await fetch(`${this.etcdEndpoints[from]}/v3/maintenance/transfer-leadership`, {
      method: 'POST',
      body: JSON.stringify({ targetID: target?.header.member_id }),
    });
  }

  /** As `signal` and `restart`, for the etcd member beside server `at`. */
  killEtcd(at: number): void {
    this.#group.signal(ETCDS[at] as string, 'SIGKILL');
  }

  async restartEtcd(at: number): Promise<void> {
    const name = ETCDS[at] as string;
    await this.#group.ended(name, 10_000);
    await this.#group.start([name]);
  }

  /** Every process of the group, by what it is there. */
  async processes(): Promise<Processes> {
    const roles = (names: readonly string[], leader: number, kind: readonly [string, string]) =>
      names.map((name, at) => {
        const pid = this.#group.pidOf(name);
        if (pid === null) throw new Error(`${name} does not run`);
        return [at === leader ? kind[0] : `${kind[1]} ${MEMBERS[at]}`, pid] as const;
      });
    const servers = roles(SERVERS, await this.leader(), ['leader', 'standby']);
    const etcds = roles(ETCDS, await this.etcdLeader(), ['etcd leader', 'etcd follower']);
    return Object.fromEntries([...servers, ...etcds]);
  }

  /** Resident memory of a server, MiB, and the processor time it has used, seconds. */
  usage(at: number): { readonly residentMiB: number; readonly cpuSeconds: number } {
    const pid = this.#group.pidOf(SERVERS[at] as string);
    if (pid === null) throw new Error(`${SERVERS[at]} does not run`);
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const residentMiB = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
    return { residentMiB, cpuSeconds: processorMs(pid) / 1000 };
  }

  /** What the servers have logged, for failures. */
  logs(): string {
    return SERVERS.map((name) => {
      const lines = readFileSync(join(this.#folder, `${name}.log`), 'utf8')
        .trimEnd()
        .split('\n');
      return [`--- ${name}`, ...lines.slice(-8)].join('\n');
    }).join('\n');
  }
}

interface EtcdStatus {
  readonly header: { readonly member_id: string };
  readonly leader: string;
}

/** Null: it does not answer. */
async function etcdStatus(endpoint: string): Promise<EtcdStatus | null> {
  try {
    const answer = await fetch(`${endpoint}/v3/maintenance/status`, { method: 'POST', body: '{}' });
    return (await answer.json()) as EtcdStatus;
  } catch {
    return null;
  }
}
