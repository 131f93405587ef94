/** Loading the state: the newest snapshot that is whole, the older one if it is not (rule L3). */
import { CorruptLogError, type LockLog, type SnapshotManifest } from './port.ts';

export interface LoadedSnapshot {
  readonly manifest: SnapshotManifest;
  readonly chunks: readonly Uint8Array[];
}

/**
 * Undefined when there is no snapshot: the log is then read from index 1. `onBad` is told of each one that was skipped.
 * @throws CorruptLogError when there are snapshots and none is whole.
 */
export async function loadNewestSnapshot(
  log: Pick<LockLog, 'snapshots' | 'readChunk'>,
  onBad: (manifest: SnapshotManifest, error: CorruptLogError) => void,
): Promise<LoadedSnapshot | undefined> {
  const manifests = await log.snapshots();
  for (const manifest of manifests) {
    try {
      return { manifest, chunks: await readChunks(log, manifest) };
    } catch (error) {
      if (!(error instanceof CorruptLogError)) throw error;
      onBad(manifest, error);
    }
  }
  if (manifests.length === 0) return undefined;
  throw new CorruptLogError(`none of the ${manifests.length} snapshots is whole`);
}

async function readChunks(
  log: Pick<LockLog, 'readChunk'>,
  manifest: SnapshotManifest,
): Promise<Uint8Array[]> {
  const chunks: Uint8Array[] = [];
  for (let number = 0; number < manifest.chunkHashes.length; number += 1) {
    chunks.push(await log.readChunk(manifest, number));
  }
  return chunks;
}
