/** The engines that the contract is tested on, each as something stored that handles are opened on. */
import { DatabaseSync } from 'node:sqlite';
import { openEmbeddedLog } from './embedded/embedded-log.ts';
import { seededRandom, systemPorts, temporaryDirectory, VirtualTimers } from './log.fixture.ts';
import { MemoryLog } from './memory-log.ts';
import { MemoryStore } from './memory-store.ts';
import type { LockLog, SnapshotManifest } from './port.ts';

/** One stored log on which handles are opened, and damage is done. */
export interface Stored {
  open(): Promise<LockLog>;
  /** Flips a bit of the chunk as stored. */
  damageChunk(manifest: SnapshotManifest, chunk: number): Promise<void>;
  remove(): void | Promise<void>;
}

function storedInMemory(open: (store: MemoryStore) => LockLog): Stored {
  const store = new MemoryStore('lineage-1');
  return {
    open: async () => open(store),
    damageChunk: async (manifest, number) => {
      // The store keeps what it was given: damage that very array.
      const stored = store.readChunk(manifest, number);
      stored[0] = (stored[0] ?? 0) ^ 1;
    },
    remove: () => undefined,
  };
}

function storedInMemoryWithFaults(seed: number): Stored {
  const random = seededRandom(seed);
  const timers = new VirtualTimers({ running: true });
  const latencyMs = (): number => random.fraction() * 2;
  return storedInMemory(
    (store) => new MemoryLog(store, { timers, random, latencyMs, unknownOutcomes: 0.02 }),
  );
}

function storedInFile(): Stored {
  const directory = temporaryDirectory();
  return {
    open: () => openEmbeddedLog({ directory: directory.path, ...systemPorts() }),
    damageChunk: async (manifest, number) => {
      const database = new DatabaseSync(`${directory.path}/log.db`);
      const where = 'snapshot_id = ? AND number = ?';
      const row = database
        .prepare(`SELECT bytes FROM snapshot_chunks WHERE ${where}`)
        .get(manifest.id, number);
      const bytes = row?.bytes as Uint8Array;
      bytes[0] = (bytes[0] ?? 0) ^ 1;
      database.prepare(`UPDATE snapshot_chunks SET bytes = ? WHERE ${where}`).run(bytes, manifest.id, number);
      database.close();
    },
    remove: () => directory.remove(),
  };
}

export interface Engine {
  readonly name: string;
  /** More than one process can have its log open. */
  readonly hasStandbys: boolean;
  make(): Stored;
}

export function enginesOf(seed: number): readonly Engine[] {
  return [
    {
      name: 'memory',
      hasStandbys: true,
      make: () => storedInMemory((store) => new MemoryLog(store)),
    },
    {
      name: `memory with latency and lost answers (seed ${seed})`,
      hasStandbys: true,
      make: () => storedInMemoryWithFaults(seed),
    },
    { name: 'embedded', hasStandbys: false, make: storedInFile },
  ];
}
