/** A group of real processes that exports its audit, under load, with leaders that die. */
import { setTimeout as pause } from 'node:timers/promises';
import type { HistoryEntry } from '../../../src/api/entry.ts';
import { AdminClient } from '../../../src/cli/admin-client.ts';
import { GroupBench } from './group-bench.ts';
import { GroupClients } from './group-clients.ts';

const WAITERS = 4;

export class AuditedGroup {
  readonly bench: GroupBench;
  #clients: GroupClients | null;

  private constructor(bench: GroupBench, clients: GroupClients) {
    this.bench = bench;
    this.#clients = clients;
  }

  /** `audit`: that part of a server's configuration, by its name. */
  static async start(audit: (name: string) => object): Promise<AuditedGroup> {
    const bench = await GroupBench.start({ audit });
    const clients = new GroupClients(bench);
    const group = new AuditedGroup(bench, clients);
    try {
      await clients.keep(3);
      await clients.passHot(WAITERS);
    } catch (error) {
      await group.end();
      throw error;
    }
    return group;
  }

  /** Grants so far of the name that all want. */
  get hotGrants(): number {
    return this.#clients?.hotGrants ?? 0;
  }

  /** kill -9 of the leader in the middle of the load; it comes back as a follower. */
  async killLeader(): Promise<void> {
    const leader = await this.bench.leader();
    await this.bench.kill(leader);
    await this.bench.leader();
    await pause(1_000);
    await this.bench.group.start([leader]);
  }

  /** Has one written and the log trimmed behind it, as far as it may; resolves to the entry that it stands on. */
  async snapshot(): Promise<number> {
    const admin = new AdminClient(this.bench.adminSocket(await this.bench.leader()));
    try {
      return (await admin.snapshot('')).index;
    } finally {
      admin.close();
    }
  }

  /** The load ends; resolves to what went wrong for the applications. */
  async endLoad(): Promise<readonly string[]> {
    const complaints = this.#clients?.complaints ?? [];
    await this.#clients?.end();
    this.#clients = null;
    return complaints;
  }

  /** The load ends, and the committed history is what it is but for beats. `complaints`: what went wrong for the applications. */
  async quiet(): Promise<{
    readonly history: readonly HistoryEntry[];
    readonly complaints: readonly string[];
  }> {
    const complaints = await this.endLoad();
    return { history: await this.bench.history(), complaints };
  }

  async end(): Promise<void> {
    await this.endLoad();
    await this.bench.end();
  }
}
