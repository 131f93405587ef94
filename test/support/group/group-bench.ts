/** A lock group of real processes for one test file: three etcd members, three lock servers, in a folder of its own. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { ensureEtcd } from '../../../scripts/etcd.mjs';
import type { HistoryEntry } from '../../../src/api/entry.ts';
import { LocalGroup } from '../../../src/cli/group/local-group.ts';
import { MEMBERS, type PlannedProcess } from '../../../src/cli/group/plan.ts';
import { openEtcdLog } from '../../../src/log/etcd/etcd-log.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import type { MemberStatus } from '../../../src/server/member/member-status.ts';
import { history } from '../../../src/server/snapshots/recovery.ts';
import { EtcdAdmin } from './etcd-admin.ts';
import { ProxyNet } from './proxy-net.ts';
import { flag, replan, throughProxies, withSidecars } from './rewire.ts';

export const SERVERS = MEMBERS.map((name) => `server-${name}`);
export const ETCDS = MEMBERS.map((name) => `etcd-${name}`);
export const ALIAS = 'group';
const LEADER_MS_MAX = 20_000;
const POLL_MS = 20;

const MANIFEST = {
  apiVersion: 'leasehold.dev/v1alpha1',
  kind: 'LockNamespace',
  metadata: { name: ALIAS, namespace: 'test' },
  spec: {
    safety: { class: 'Efficiency' },
    limits: { perClient: { locks: 1_000, operationsPerSecond: 10_000 } },
  },
};

export interface BenchOptions {
  readonly leaseTtlSeconds?: number;
  /** All connections between its processes go through `net`. */
  readonly isProxied?: boolean;
  /** Processes; the clients that most tests use have theirs in the test's own process. */
  readonly sidecars?: number;
  /** Whether etcd syncs what it acknowledges: only then has it survived a loss of power. */
  readonly fsync?: boolean;
  /** Where each lock server exports its audit; `name` of its member. */
  readonly audit?: (name: string) => object;
  /** Another etcd than the one that is built here. */
  readonly etcd?: string;
  /** Before anything starts: to change with `replan` how it will. */
  readonly prepare?: (bench: GroupBench) => Promise<void>;
}

export class GroupBench {
  readonly folder: string;
  readonly net: ProxyNet;
  #group: LocalGroup;

  private constructor(folder: string, group: LocalGroup, net: ProxyNet) {
    this.folder = folder;
    this.#group = group;
    this.net = net;
  }

  /** Suspicions may follow each other, since tests kill more often than leaders die. */
  static async start(options: BenchOptions = {}): Promise<GroupBench> {
    const { isProxied = false, sidecars = 0 } = options;
    const bench = await GroupBench.make(options);
    try {
      if (isProxied) bench.#group = await throughProxies(bench.folder, bench.#group, bench.net);
      if (sidecars > 0) {
        const net = isProxied ? bench.net : null;
        bench.#group = await withSidecars(bench.folder, bench.#group, sidecars, net);
      }
      await options.prepare?.(bench);
      await bench.group.start(ETCDS);
      await bench.group.start(SERVERS);
      await bench.leader();
      await bench.group.start(bench.sidecars);
    } catch (error) {
      await bench.end();
      throw error;
    }
    return bench;
  }

  /** Nothing of it runs yet. */
  static async make({ leaseTtlSeconds = 2, fsync = false, sidecars = 0, audit, etcd }: BenchOptions) {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-group-'));
    const made = await LocalGroup.make({
      folder,
      alias: ALIAS,
      manifest: stringify(MANIFEST),
      etcd: etcd ?? (await ensureEtcd()),
      etcdFlags: fsync ? [] : ['--unsafe-no-fsync'],
      node: process.execPath,
      leasehold: join(import.meta.dirname, '../../../src/cli/main.ts'),
      server: { suspicion: { silenceMs: 400, everyMs: 1_000 } },
      leaseTtlSeconds,
      ...(audit === undefined ? {} : { audit }),
    });
    const group =
      sidecars > 0 ? made : replan(folder, (planned) => (planned.kind === 'sidecar' ? [] : [planned]));
    const bench: GroupBench = new GroupBench(folder, group, new ProxyNet({ pids: () => bench.pids() }));
    return bench;
  }

  get group(): LocalGroup {
    return this.#group;
  }

  /** Names of its sidecar processes. */
  get sidecars(): string[] {
    return this.group.plan.processes.filter(({ kind }) => kind === 'sidecar').map(({ name }) => name);
  }

  /** Of all that run. */
  pids(): ReadonlyMap<string, number> {
    const running = this.group.plan.processes.map(({ name }) => [name, this.group.pidOf(name)] as const);
    return new Map(running.filter((pair): pair is [string, number] => pair[1] !== null));
  }

  /** Changes how a process is started from its next start on. */
  replan(name: string, change: (planned: PlannedProcess) => PlannedProcess): void {
    this.#group = replan(this.folder, (planned) => [planned.name === name ? change(planned) : planned]);
  }

  planned(name: string): PlannedProcess {
    const planned = this.group.plan.processes.find((candidate) => candidate.name === name);
    if (planned === undefined) throw new RangeError(`the group has no process ${name}`);
    return planned;
  }

  /** Straight to a member, past all proxies. */
  etcd(name: string): EtcdAdmin {
    return new EtcdAdmin(flag(this.planned(name).args, 'listen-client-urls'));
  }

  /** Name of the process that leads, once one says so. */
  async leader(): Promise<string> {
    const deadline = performance.now() + LEADER_MS_MAX;
    while (performance.now() < deadline) {
      for (const name of SERVERS) if ((await this.status(name))?.role === 'leading') return name;
      await pause(POLL_MS);
    }
    throw new Error(`nobody leads:\n${this.logs()}`);
  }

  /** Null: it does not answer. */
  async status(name: string): Promise<MemberStatus | null> {
    if (this.group.pidOf(name) === null) return null;
    return (await this.group.probe(name)) as MemberStatus | null;
  }

  /** Where a server serves operators. */
  adminSocket(name: string): string {
    return this.group.plan.processes.find((planned) => planned.name === name)?.adminSocket as string;
  }

  /** SIGKILL; returns at which moment it was gone. */
  async kill(name: string): Promise<number> {
    this.group.signal(name, 'SIGKILL');
    await this.group.ended(name, 5_000);
    return performance.now();
  }

  /** Everything that was ever committed, by replay. */
  async history(): Promise<readonly HistoryEntry[]> {
    const { etcdEndpoints: endpoints, etcdPrefix: prefix } = this.group.plan;
    const runtime = createSystemRuntime({ logLevel: 'silent' });
    const log = await openEtcdLog({ endpoints, prefix, ...runtime });
    try {
      const entries: HistoryEntry[] = [];
      for await (const entry of history(log, 1)) entries.push(entry);
      return entries;
    } finally {
      await log.close();
    }
  }

  /** Why each leader so far has led, in order: after a death it is a suspicion, or a lease that ran out. */
  async reasonsToLead(): Promise<readonly string[]> {
    const events = (await this.history()).flatMap((entry) => entry.events);
    return events.flatMap((event) => (event.type === 'tookOver' ? [event.reason] : []));
  }

  /** What the servers have logged, for failures. */
  logs(): string {
    return SERVERS.map((name) => {
      const lines = readFileSync(join(this.folder, `${name}.log`), 'utf8')
        .trimEnd()
        .split('\n');
      return [`--- ${name}`, ...lines.slice(-15)].join('\n');
    }).join('\n');
  }

  async end(): Promise<void> {
    await this.group.stop();
    await this.net.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
