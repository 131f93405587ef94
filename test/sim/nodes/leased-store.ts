/**
 * The log of a group of replicas: who leads holds a key that hangs on a lease, as in etcd. The lease runs out by the store's own clock
 * when its holder is silent, wherever that comes from; until then nobody else can lead (rules L1, S7).
 */
import type { MemoryLogFaults } from '../../../src/log/memory-log.ts';
import type { MemoryStore } from '../../../src/log/memory-store.ts';
import type { AppendOutcome, LeaderRecord, Leadership, StoredEntry } from '../../../src/log/port.ts';
import type { Planned } from '../world/event-queue.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import { type LogWatch, WatchedLog, WatchedStore } from './watched-log.ts';

/** What a server that waits for the leadership takes to see that it is free, at most: it looks every 50 ms. */
const LOOK_MS_MAX = 75;
/** Keepalives of a lease in its time. */
const KEEPALIVES_PER_LEASE = 4;

/** A beat, and what it takes; a standby that looks every 100 ms sees an entry at least every 400. */
const STEADY_GAP_MS = 270;
export const STEADY_MS = 3_000;

/** Somebody else leads. */
class Taken extends Error {}

export class LeasedStore extends WatchedStore {
  readonly leaseMs: number;
  readonly #world: World;
  readonly #waiting = new Set<() => void>();
  #expiry: Planned | null = null;
  #expiresAtUs = 0;
  /** The whole store stands still, and its clock with it: whoever leads it next gives every lease its full time. */
  #isOut = false;
  #lastEntryUs = 0;
  #steadySinceUs = 0;

  constructor(world: World, lineage: string, leaseMs: number) {
    super(lineage);
    this.#world = world;
    this.leaseMs = leaseMs;
  }

  /** `holder` names the server and its lease. The same one again is told what it has won already. */
  override campaign(holder: string): Leadership {
    const leader = super.leader();
    if (leader?.serverId === holder) {
      this.keptAlive(leader.epoch);
      return { serverId: holder, epoch: leader.epoch, fence: `${this.lineage}/${leader.epoch}` };
    }
    if (leader !== null) throw new Taken();
    const leadership = super.campaign(holder);
    this.keptAlive(leadership.epoch);
    return leadership;
  }

  /** One that is sent again after its answer was lost is no new entry: nobody sees anything come. */
  override append(leadership: Leadership, entry: StoredEntry): AppendOutcome {
    const before = this.head().index;
    const outcome = super.append(leadership, entry);
    if (this.head().index === before) return outcome;
    const { nowUs } = this.#world;
    if (nowUs - this.#lastEntryUs > STEADY_GAP_MS * US_PER_MS) this.#steadySinceUs = nowUs;
    this.#lastEntryUs = nowUs;
    return outcome;
  }

  /** Whether entries have come so closely that who looks for them has seen them come. */
  get isSteady(): boolean {
    const { nowUs } = this.#world;
    if (nowUs - this.#lastEntryUs > STEADY_GAP_MS * US_PER_MS) return false;
    return nowUs - this.#steadySinceUs > STEADY_MS * US_PER_MS;
  }

  override leader(): LeaderRecord | null {
    const leader = super.leader();
    return leader === null ? null : { ...leader, serverId: serverOf(leader.serverId) };
  }

  override depose(): void {
    super.depose();
    this.#callOff();
    for (const wake of [...this.#waiting]) wake();
  }

  override resign(leadership: Leadership): void {
    super.resign(leadership);
    if (super.leader() === null) this.depose();
  }

  /** The holder of this epoch's lease has shown itself. */
  keptAlive(epoch: number): void {
    if (super.leader()?.epoch !== epoch) return;
    this.#expiresAtUs = this.#world.nowUs + this.leaseMs * US_PER_MS;
    if (this.#expiry === null) this.#planExpiry();
  }

  setOutage(isOut: boolean): void {
    this.#isOut = isOut;
    const leader = super.leader();
    if (!isOut && leader !== null) this.keptAlive(leader.epoch);
  }

  /** An old copy takes the place of what there is; whoever led in it is gone, and no judge follows. */
  rollBack(copy: MemoryStore): void {
    this.judge = null;
    this.restore(copy);
    this.depose();
  }

  /** Resolves when nobody leads but perhaps this holder, who was not told yet. */
  whenFree(holder: string): Promise<void> {
    if ((super.leader()?.serverId ?? holder) === holder) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        this.#world.mustSettle();
        resolve();
      };
      this.#waiting.add(wake);
    });
  }

  #planExpiry(): void {
    this.#expiry = this.#world.at(this.#expiresAtUs, () => {
      this.#expiry = null;
      if (super.leader() === null) return;
      if (this.#isOut) this.#expiresAtUs = this.#world.nowUs + this.leaseMs * US_PER_MS;
      if (this.#world.nowUs < this.#expiresAtUs) this.#planExpiry();
      else {
        this.#world.trace?.(`the lease of epoch ${super.leader()?.epoch} has run out`);
        this.depose();
      }
    });
  }

  #callOff(): void {
    if (this.#expiry !== null) this.#expiry.action = null;
    this.#expiry = null;
  }
}

/** One replica's handle: campaigns as the etcd engine does, and keeps its lease alive while it can. */
export class LeasedLog extends WatchedLog {
  readonly #store: LeasedStore;
  readonly #faults: MemoryLogFaults;
  #leases = 1;
  #won: Leadership | null = null;
  /** No call of this replica gets through. */
  #isOutage = false;

  readonly #onEvictingSteady: () => void;

  /** `onEvictingSteady`: this replica is about to end a leadership whose entries it cannot have missed. */
  constructor(store: LeasedStore, faults: MemoryLogFaults, watch: LogWatch, onEvictingSteady: () => void) {
    super(store, faults, watch);
    this.#onEvictingSteady = onEvictingSteady;
    this.#store = store;
    this.#faults = faults;
  }

  override evict(epoch: number): Promise<boolean> {
    if (this.#store.isSteady && this.#store.leader()?.epoch === epoch) this.#onEvictingSteady();
    return super.evict(epoch);
  }

  override setOutage(outage: boolean): void {
    super.setOutage(outage);
    this.#isOutage = outage;
  }

  override async campaign(serverId: string): Promise<Leadership> {
    const { life } = this.watch;
    const { timers, random } = life.runtime;
    // A leadership that this handle had before ends first.
    if (this.#won !== null) {
      await super.resign(this.#won);
      this.#won = null;
      this.#leases++;
    }
    const holder = `${serverId}#${life.process.lives}.${this.#leases}`;
    for (;;) {
      await this.#store.whenFree(holder);
      await new Promise<void>((resolve) => void timers.after(LOOK_MS_MAX * random.fraction(), resolve));
      try {
        const leadership = await super.campaign(holder);
        this.#won = leadership;
        this.#keepAlive(leadership);
        return { ...leadership, serverId };
      } catch (error) {
        if (!(error instanceof Taken)) throw error;
      }
    }
  }

  #keepAlive(leadership: Leadership): void {
    const { timers, random } = this.#faults;
    timers.after(this.#store.leaseMs / KEEPALIVES_PER_LEASE, () => {
      if (this.#won !== leadership) return;
      if (!this.#isOutage) {
        timers.after(this.#faults.latencyMs(random), () => this.#store.keptAlive(leadership.epoch));
      }
      this.#keepAlive(leadership);
    });
  }
}

function serverOf(holder: string): string {
  return holder.split('#')[0] as string;
}
