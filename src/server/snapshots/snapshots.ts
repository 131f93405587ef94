/**
 * When to write a snapshot, having it written, and trimming the log behind it (rules L3, L4, L5). In a group a standby writes it, frozen at
 * one index, because making it takes seconds for a large state and the leader must not stand still. Without a standby, or when none
 * gets on with it, the leader replays the log on a second state, which stands at one index, and writes that; both in slices of a few
 * milliseconds, while it goes on serving.
 */
import { assert, decodeEntry, type State } from '../../core/index.ts';
import {
  DeposedError,
  type Leadership,
  type LockLog,
  type LogPosition,
  type SnapshotManifest,
} from '../../log/port.ts';
import { SnapshotWriter } from '../../log/snapshot-writer.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { recover } from './recovery.ts';
import { chunksOf, writePaced } from './snapshot-chunks.ts';
import { type AuditHold, auditHold, trimBound } from './trim-bound.ts';
import { unhurried } from './unhurried-log.ts';

const FIRST_SNAPSHOT_BYTES = 64 * 1024 * 1024;
/** After one that failed the log grows by this share of what makes one due before the next is tried. */
const RETRY_SHARE = 1 / 8;
/** How often the leader looks how far a standby is. */
const LOOK_MS = 500;
/** A standby that has not written a chunk for so long, or claimed the snapshot, is not waited for. */
const STANDBY_MS_MAX = 10_000;

/** Standbys look every second whether one is open. */
const OPEN_TRIES_MAX = 3;

/** A state of so many records is made into bytes between two entries: that takes less than replaying the log, some 50 ms. */
const ONE_PASS_RECORDS_MAX = 10_000;
/**
 * Up to here a second state fits beside the first: together they are no larger than the million of locks for which there has to be room. Beyond,
 * the leader stands still for one pass, which is better than running out of memory.
 */
const SECOND_STATE_RECORDS_MAX = 500_000;

/** A standby should have written it, and has not: the leader writes the next one itself. */
class NotWrittenError extends Error {}

/** A state at one index, as bytes. */
interface Frozen {
  readonly chunks: Iterable<Uint8Array>;
  readonly at: LogPosition;
  readonly eventHash: string;
}

export interface SnapshotsOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly leadership: Leadership;
  /** Bytes in the log above the last snapshot, and of that snapshot. */
  readonly logBytes: number;
  readonly lastBytes: number;
  /** Lowest size of the log at which one is due. */
  readonly dueBytes?: number;
  /** Indexes up to which attached standbys have applied the log. */
  readonly standbys: () => readonly number[];
}

export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #dueBytes: number;
  /** Bytes appended since the last snapshot. */
  #logBytes: number;
  #lastBytes: number;
  #isWriting = false;
  /** Set by one that failed: making it costs as much as one that succeeds. */
  #retryAtBytes = 0;
  /** The last one that a standby should have written was not. */
  #isOwnTurn = false;
  #isDemanded = false;
  #isStopped = false;

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#logBytes = options.logBytes;
    this.#lastBytes = options.lastBytes;
    this.#dueBytes = options.dueBytes ?? FIRST_SNAPSHOT_BYTES;
  }

  appended(bytes: number): void {
    this.#logBytes += bytes;
  }

  get sizes(): { readonly logBytes: number; readonly snapshotBytes: number } {
    return { logBytes: this.#logBytes, snapshotBytes: this.#lastBytes };
  }

  get isDue(): boolean {
    if (this.#isWriting || this.#isStopped) return false;
    if (this.#isDemanded || this.#isOwnTurn) return true;
    return this.#logBytes >= Math.max(this.#dueBytes, 2 * this.#lastBytes, this.#retryAtBytes);
  }

  /** Makes one due, whatever the size of the log. */
  demand(): void {
    this.#isDemanded = true;
  }

  /** This leadership is over: what is under way is left to its successor. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Must be called between two entries, with the state after the entry at `at`. Resolves when the log is trimmed. */
  async write(state: State, at: LogPosition): Promise<void> {
    this.#isWriting = true;
    this.#isDemanded = false;
    const isOwn = this.#isOwnTurn || this.#options.standbys().length === 0;
    try {
      const manifest = isOwn ? await this.#writeItself(state, at) : await this.#writtenByStandby();
      if (manifest === null) return;
      const { log, leadership } = this.#options;
      const hold = await this.#auditHold();
      await log.commitSnapshot(leadership, manifest, hold.keepFrom);
      this.#lastBytes = manifest.bytes;
      this.#logBytes = await log.retainedBytes(manifest.index);
      this.#retryAtBytes = 0;
      this.#isOwnTurn = false;
      await this.#trim(hold);
    } catch (error) {
      // Its successor makes one when it is due; what this one did not get done is no failure.
      if (this.#isStopped || (await this.#isDeposed(error))) return;
      this.#isOwnTurn = error instanceof NotWrittenError;
      if (!this.#isOwnTurn) this.#retryAtBytes = this.#logBytes + RETRY_SHARE * this.#dueBytes;
      throw error;
    } finally {
      this.#isWriting = false;
    }
  }

  /** Whether that is why, though this leader has not noticed yet: a successor closes what was open, and then chunks are refused like any other. */
  async #isDeposed(error: unknown): Promise<boolean> {
    if (error instanceof DeposedError) return true;
    if (!(error instanceof RangeError)) return false;
    const { log, leadership } = this.#options;
    const leader = await log.leader().catch(() => null);
    return leader !== null && leader.epoch > leadership.epoch;
  }

  /** Rule L4: behind everybody who still reads, within a bound. */
  async #trim({ trimTo }: AuditHold): Promise<void> {
    const { log, leadership, standbys } = this.#options;
    const quotaBytes = (await log.space())?.quotaBytes;
    const places = standbys().map(async (index) => ({ index, behindBytes: await log.retainedBytes(index) }));
    await log.trim(leadership, Math.min(trimTo, trimBound(await Promise.all(places), quotaBytes)));
  }

  async #auditHold(): Promise<AuditHold> {
    const { log } = this.#options;
    const index = await log.auditCursor();
    if (index === null) return auditHold(null, null);
    const snapshot = (await log.snapshots()).find((manifest) => manifest.index <= index);
    const below = snapshot ?? { index: 0, bytes: 0 };
    const bytes = below.bytes + (await log.retainedBytes(below.index));
    const place = {
      index,
      behindBytes: await log.retainedBytes(index),
      basis: { index: below.index, bytes },
    };
    return auditHold(place, await log.space());
  }

  /** Null: this leadership is over. */
  async #writeItself(state: State, at: LogPosition): Promise<SnapshotManifest | null> {
    const { runtime, log } = this.#options;
    const isOver = (): boolean => this.#isStopped;
    const records = state.holds + state.waits + state.sessions.size;
    const isOnePass = records <= ONE_PASS_RECORDS_MAX || records > SECOND_STATE_RECORDS_MAX;
    // All chunks now, if ever: with the next entry the state is another one.
    const frozen = isOnePass ? { chunks: [...chunksOf(state)], at, eventHash: state.eventHash } : null;
    const writer = new SnapshotWriter(log, await this.#openOwn());
    const { chunks, at: place, eventHash } = frozen ?? (await this.#replayed(isOver));
    const isWhole = await writePaced(writer, chunks, { ...runtime, isOver });
    return isWhole ? writer.manifest({ ...place, eventHash }) : null;
  }

  /** Its own to write: a standby that is not attached, or did not get on with the last one, sees that it is open as well, and may be quicker. */
  async #openOwn(): Promise<string> {
    const { log, leadership } = this.#options;
    for (let tries = 1; ; tries++) {
      const id = await log.openSnapshot(leadership);
      if (await log.claimSnapshot(id, leadership.serverId)) return id;
      const writer = (await log.openedSnapshot())?.serverId ?? null;
      if (writer === null || tries === OPEN_TRIES_MAX) return id;
    }
  }

  /** A state of its own, from the log: nothing changes it any more. */
  async #replayed(isOver: () => boolean): Promise<Frozen> {
    const { log, runtime } = this.#options;
    const { state, head } = await recover(unhurried(log, runtime.timers, isOver), runtime.logger);
    assert(isOver() || head.index > 0, 'a leader has committed an entry');
    assert(state.index === head.index, 'the second state stands where its log was read to');
    return { chunks: chunksOf(state), at: head, eventHash: state.eventHash };
  }

  /** Opens a snapshot and waits until a standby has written it. Null: this leadership is over. */
  async #writtenByStandby(): Promise<SnapshotManifest | null> {
    const { runtime, log, leadership } = this.#options;
    const id = await log.openSnapshot(leadership);
    let steps = -1;
    let steppedAtMs = 0;
    while (!this.#isStopped) {
      const open = await log.openedSnapshot();
      if (open?.id !== id) throw new DeposedError('write a snapshot');
      if (open.offer !== null) return await this.#checked(open.offer);
      const now = runtime.clock.monotonicMs();
      const taken = open.chunks + (open.serverId === null ? 0 : 1);
      if (taken > steps) {
        steps = taken;
        steppedAtMs = now;
      } else if (now - steppedAtMs >= STANDBY_MS_MAX) {
        throw new NotWrittenError(`no standby goes on with snapshot ${id}`);
      }
      await pause(runtime.timers, LOOK_MS);
    }
    return null;
  }

  /** A standby that has computed another state than the leader has halted; should it not have, its snapshot is not taken. */
  async #checked(offer: SnapshotManifest): Promise<SnapshotManifest> {
    for await (const stored of this.#options.log.read(offer.index)) {
      const { eventHash } = decodeEntry(stored.bytes);
      if (stored.hash === offer.entryHash && eventHash === offer.eventHash) return offer;
      break;
    }
    throw new NotWrittenError(`snapshot ${offer.id} of a standby does not show the state at ${offer.index}`);
  }
}
