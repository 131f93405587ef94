/**
 * A standby's part in snapshots: it claims the one that the leader has opened, writes it from its own state, and offers it (rule L3). Nothing
 * here needs trust: chunks go only into the open snapshot, and what counts is the manifest that the leader commits.
 */
import type { LockLog } from '../../log/port.ts';
import { SnapshotWriter } from '../../log/snapshot-writer.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Recovered } from './recovery.ts';
import { chunksOf, writePaced } from './snapshot-chunks.ts';

/** How often it looks whether one is open: a read of three small keys. */
const LOOK_MS = 1_000;

export class SnapshotDuty {
  readonly #runtime: Runtime;
  readonly #log: LockLog;
  readonly #serverId: string;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(runtime: Runtime, log: LockLog, serverId: string) {
    this.#runtime = runtime;
    this.#log = log;
    this.#serverId = serverId;
  }

  /** Id of the snapshot that this replica has to write now; null: none. */
  async claim(): Promise<string | null> {
    const now = this.#runtime.clock.monotonicMs();
    if (now - this.#lookedAtMs < LOOK_MS) return null;
    this.#lookedAtMs = now;
    const open = await this.#log.openedSnapshot();
    // Claimed under this name already: by an earlier life of this process, which has taken with it what it had written.
    if (open === null || open.serverId !== null) return null;
    return (await this.#log.claimSnapshot(open.id, this.#serverId)) ? open.id : null;
  }

  /** The state must stay as it is until this resolves or `isOver` becomes true. Never rejects. */
  async write(id: string, { state, head }: Recovered, isOver: () => boolean): Promise<void> {
    const { logger } = this.#runtime;
    const writer = new SnapshotWriter(this.#log, id);
    const place = { ...head, eventHash: state.eventHash };
    logger.info({ snapshot: id, index: head.index }, 'stands still to write a snapshot');
    try {
      if (!(await writePaced(writer, chunksOf(state), { ...this.#runtime, isOver }))) return;
      await this.#log.offerSnapshot(writer.manifest(place));
      logger.info({ snapshot: id, bytes: writer.bytes }, 'has written a snapshot');
    } catch (error) {
      logger.warn({ snapshot: id, error }, 'has given up writing a snapshot');
    }
  }
}
