/**
 * Lets the planned faults strike: each kind on its own, at random moments. When the run becomes quiet it ends those under
 * way and repairs what they broke.
 */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import { FAULT_KINDS, type FaultKind } from '../plan.ts';
import { adminFaults, repairNames } from './admin-faults.ts';
import { clientFaults } from './client-faults.ts';
import type { Fault, FaultMaker } from './fault.ts';
import { groupFaults } from './group-faults.ts';
import { networkFaults } from './network-faults.ts';
import { programFaults } from './program-faults.ts';
import { serverFaults } from './server-faults.ts';

const MAKERS: Readonly<Record<FaultKind, FaultMaker>> = {
  ...serverFaults,
  ...networkFaults,
  ...clientFaults,
  ...adminFaults,
  ...groupFaults,
  ...programFaults,
};

const REPAIR_EVERY_MS = 3_000;

export class FaultInjector {
  readonly struck = new Map<FaultKind, number>();
  readonly #cluster: Cluster;
  readonly #random: Random;
  readonly #underWay = new Set<Fault>();
  #isStopped = false;
  #startedMs = 0;
  #stoppedMs: number | null = null;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#random = cluster.world.random('faults');
  }

  /** How long faults have had their turn so far, ms of virtual time. */
  get busyMs(): number {
    return (this.#stoppedMs ?? this.#cluster.world.nowMs) - this.#startedMs;
  }

  start(): void {
    this.#startedMs = this.#cluster.world.nowMs;
    for (const kind of FAULT_KINDS) {
      const meanMs = this.#cluster.plan.faults.get(kind);
      if (meanMs !== undefined) this.#planNext(kind, meanMs);
    }
    const { faults, poisonous } = this.#cluster.plan;
    if (faults.has('quarantine') || faults.has('poisonName') || poisonous > 0) this.#repairAgain();
  }

  /** Ends all faults; nothing strikes any more. */
  stop(): void {
    this.#isStopped = true;
    this.#stoppedMs = this.#cluster.world.nowMs;
    for (const fault of [...this.#underWay]) this.#end(fault);
  }

  #repairAgain(): void {
    this.#cluster.world.afterMs(REPAIR_EVERY_MS, () => {
      this.#cluster.world.mustSettle();
      repairNames(this.#cluster, this.#random, this.#isStopped);
      this.#repairAgain();
    });
  }

  #planNext(kind: FaultKind, meanMs: number): void {
    const inMs = -Math.log(1 - this.#random.int(1_000_000) / 1_000_000) * meanMs;
    this.#cluster.world.afterMs(inMs, () => {
      if (this.#isStopped) return;
      this.#strike(kind);
      this.#planNext(kind, meanMs);
    });
  }

  #strike(kind: FaultKind): void {
    this.#cluster.world.mustSettle();
    const fault = MAKERS[kind](this.#cluster, this.#random);
    if (fault === null) return;
    this.struck.set(kind, (this.struck.get(kind) ?? 0) + 1);
    for (const part of fault.parts) this.#cluster.faultsSeen.begin(part);
    this.#underWay.add(fault);
    this.#cluster.world.afterMs(fault.forMs, () => this.#end(fault));
  }

  #end(fault: Fault): void {
    if (!this.#underWay.delete(fault)) return;
    this.#cluster.world.mustSettle();
    fault.end();
    for (const part of fault.parts) this.#cluster.faultsSeen.end(part);
  }
}
