/**
 * From the log to a state: the newest good snapshot, then every entry after it. Replaying checks each entry's event hash,
 * so a replica that computes something else than the leader did stops here instead of serving it (rule C14).
 */
import { Buffer } from 'node:buffer';
import type { Entry, HistoryEntry } from '../../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX } from '../../api/limits.ts';
import {
  type Applied,
  apply,
  createState,
  decodeEntry,
  FormatError,
  SnapshotReader,
  type State,
} from '../../core/index.ts';
import {
  CorruptLogError,
  type LockLog,
  type LogPosition,
  type SnapshotManifest,
  type StoredEntry,
  TrimmedError,
} from '../../log/port.ts';
import type { Logger } from '../../platform/runtime.ts';

/** What replaying needs of a log; a log opened for reading has it too. */
export type ReadableLog = Pick<LockLog, 'lineage' | 'read' | 'snapshots' | 'readChunk'>;

export interface Recovered {
  readonly state: State;
  /** Position of the last entry applied. */
  readonly head: LogPosition;
  /** Wall clock of the last entry, 0 for an empty log. */
  readonly wallMs: number;
  readonly snapshot: SnapshotManifest | null;
  /** Bytes of the entries above that snapshot. */
  readonly bytes: number;
}

/** Rule C15: the group is at a behaviour level that this program cannot apply. It must neither follow nor lead. */
class BehaviourTooHighError extends Error {
  constructor(level: number) {
    super(
      `this group is at behaviour level ${level}, and this program knows levels up to ${BEHAVIOUR_LEVEL_MAX}: run the version that the other replicas run, or a newer one`,
    );
    this.name = 'BehaviourTooHighError';
  }
}

function requireBehaviour(level: number): void {
  if (level > BEHAVIOUR_LEVEL_MAX) throw new BehaviourTooHighError(level);
}

/**
 * Reads the whole log. Throws CorruptLogError when it contradicts itself or this program. Whoever is slow, or was stopped in the middle, may
 * find that newer snapshots were written meanwhile and the log trimmed: it begins again, with those.
 */
export async function recover(log: ReadableLog, logger: Logger): Promise<Recovered> {
  for (;;) {
    const manifests = await log.snapshots();
    try {
      return await recoverFrom(log, manifests, logger);
    } catch (error) {
      if (!(error instanceof TrimmedError)) throw error;
      const [newest] = await log.snapshots();
      if (newest !== undefined && newest.index > (manifests[0]?.index ?? 0)) continue;
      const what = `none of the ${manifests.length} snapshots is whole, and ${error.message}`;
      throw new CorruptLogError(what, { cause: error });
    }
  }
}

async function recoverFrom(
  log: ReadableLog,
  manifests: readonly SnapshotManifest[],
  logger: Logger,
): Promise<Recovered> {
  const { state, snapshot } = await newestGood(log, manifests, (manifest, error) => {
    logger.error({ snapshot: manifest.id, index: manifest.index, error }, 'snapshot unusable');
  });
  let head: LogPosition =
    snapshot === null ? { index: 0, hash: '' } : { index: snapshot.index, hash: snapshot.entryHash };
  let wallMs = 0;
  let bytes = 0;
  for await (const stored of log.read(head.index + 1)) {
    const entry = replay(state, stored).entry;
    head = { index: stored.index, hash: stored.hash };
    wallMs = entry.wallMs;
    bytes += stored.bytes.byteLength;
  }
  return { state, head, wallMs, snapshot, bytes };
}

/** Applies one stored entry to `state` and compares what it causes with what the leader recorded. */
export function replay(
  state: State,
  stored: StoredEntry,
): { readonly entry: Entry; readonly applied: Applied } {
  const entry = decodeEntry(stored.bytes);
  if (entry.index !== stored.index || entry.previous !== stored.previous) {
    throw new CorruptLogError(
      `entry ${stored.index} says that it is entry ${entry.index}, or names another predecessor`,
    );
  }
  requireBehaviour(entry.behaviour);
  // At the raise itself: at the entry after it would be too late, since in between this program could win and lead at the level before.
  for (const command of entry.commands)
    if (command.type === 'raiseBehaviour') requireBehaviour(command.level);
  const applied = apply(state, entry);
  if (state.eventHash !== entry.eventHash) {
    throw new CorruptLogError(
      `entry ${entry.index} causes other events here than on its leader: the program or the log differs (rule C14)`,
    );
  }
  return { entry, applied };
}

/** Replays from the oldest state that can still be made, yielding what happened from `fromIndex` on. */
export async function* history(log: ReadableLog, fromIndex: number): AsyncGenerator<HistoryEntry> {
  const state = await stateBefore(log, fromIndex);
  yield* replayed(log, state, fromIndex);
}

/** The same, and goes on: yields null whenever it has come to the head, and looks again when asked for more. Never ends by itself. */
export async function* followHistory(
  log: ReadableLog,
  fromIndex: number,
): AsyncGenerator<HistoryEntry | null> {
  const state = await stateBefore(log, fromIndex);
  for (;;) {
    yield* replayed(log, state, fromIndex);
    yield null;
  }
}

async function* replayed(log: ReadableLog, state: State, fromIndex: number): AsyncGenerator<HistoryEntry> {
  try {
    for await (const stored of log.read(state.index + 1)) {
      const { entry, applied } = replay(state, stored);
      if (entry.index < fromIndex) continue;
      const { lineage, epoch, index, at, wallMs, eventHash } = entry;
      yield { lineage, epoch, index, at, wallMs, eventHash, events: applied.events };
    }
  } catch (error) {
    if (!(error instanceof TrimmedError) || state.index > 0) throw error;
    // Events are made by replay, and that begins at a snapshot: what lies below the oldest one cannot be told any more.
    const kept = (await log.snapshots()).map(({ index }) => index).filter((index) => index >= error.below);
    const below = Math.max(error.below, kept.length === 0 ? 0 : Math.min(...kept));
    throw new TrimmedError(below, { cause: error });
  }
}

async function stateBefore(log: ReadableLog, index: number): Promise<State> {
  const below = (await log.snapshots()).filter((manifest) => manifest.index < index);
  // Whoever recovers from this log says that a snapshot is bad; a reader only needs another one.
  return (await newestGood(log, below, () => undefined)).state;
}

/** The first good one of these, newest first, or the empty state. */
async function newestGood(
  log: ReadableLog,
  manifests: readonly SnapshotManifest[],
  onBad: (manifest: SnapshotManifest, error: Error) => void,
): Promise<{ readonly state: State; readonly snapshot: SnapshotManifest | null }> {
  for (const manifest of manifests) {
    try {
      return { state: await readSnapshot(log, manifest), snapshot: manifest };
    } catch (error) {
      // Rule L3: a bad one is skipped for the older one, or for the log from its start. One that cannot be read is not bad.
      if (!(error instanceof CorruptLogError || error instanceof FormatError)) throw error;
      // Nor is one that newer ones have taken the place of while it was read.
      const isThere = (await log.snapshots()).some(({ id }) => id === manifest.id);
      if (isThere) onBad(manifest, error);
    }
  }
  return { state: createState(log.lineage), snapshot: null };
}

async function readSnapshot(log: ReadableLog, manifest: SnapshotManifest): Promise<State> {
  const reader = new SnapshotReader();
  let rest = '';
  for (let chunk = 0; chunk < manifest.chunkHashes.length; chunk++) {
    const lines = (rest + Buffer.from(await log.readChunk(manifest, chunk)).toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) reader.line(line);
  }
  const state = reader.finish();
  requireBehaviour(state.behaviour);
  if (state.index !== manifest.index || state.lineage !== log.lineage) {
    throw new CorruptLogError(`snapshot ${manifest.id} belongs to another place of the log`);
  }
  if (manifest.eventHash !== '' && state.eventHash !== manifest.eventHash) {
    throw new CorruptLogError(`snapshot ${manifest.id} does not show the state that its manifest names`);
  }
  return state;
}
