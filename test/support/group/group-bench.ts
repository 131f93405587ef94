/** A lock group of real processes for one test file: three etcd members, three lock servers, in a folder of its own. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { ensureEtcd } from '../../../scripts/etcd.mjs';
import type { HistoryEntry } from '../../../src/api/entry.ts';
import { LocalGroup } from '../../../src/cli/group/local-group.ts';
import { MEMBERS } from '../../../src/cli/group/plan.ts';
import { openEtcdLog } from '../../../src/log/etcd/etcd-log.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import type { MemberStatus } from '../../../src/server/member.ts';
import { history } from '../../../src/server/recovery.ts';

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

export class GroupBench {
  readonly folder: string;
  readonly group: LocalGroup;

  private constructor(folder: string, group: LocalGroup) {
    this.folder = folder;
    this.group = group;
  }

  /** Suspicions may follow each other, since tests kill more often than leaders die. */
  static async start({ leaseTtlSeconds = 2 } = {}): Promise<GroupBench> {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-group-'));
    const group = await LocalGroup.make({
      folder,
      alias: ALIAS,
      manifest: stringify(MANIFEST),
      etcd: await ensureEtcd(),
      etcdFlags: ['--unsafe-no-fsync'],
      node: process.execPath,
      leasehold: join(import.meta.dirname, '../../../src/cli/main.ts'),
      server: { suspicion: { silenceMs: 400, everyMs: 1_000 } },
      leaseTtlSeconds,
    });
    const bench = new GroupBench(folder, group);
    try {
      await group.start(ETCDS);
      await group.start(SERVERS);
      await bench.leader();
    } catch (error) {
      await bench.end();
      throw error;
    }
    return bench;
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
    rmSync(this.folder, { recursive: true, force: true });
  }
}
