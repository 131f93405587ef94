/** COMMITs whose outcome is unknown (rule L2), played on the real tables. */
import { join } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LogUnavailableError } from '../errors.ts';
import { entryAfter, placeAt, readAll, START, temporaryDirectory } from '../log.fixture.ts';
import type { Leadership, SnapshotManifest } from '../port.ts';
import { SnapshotWriter } from '../snapshot-writer.ts';
import { invoke, type StoreArguments, type StoreMethod, type StoreReply } from '../store.ts';
import { StoreLog } from '../store-log.ts';
import { makeDirectory, openForWriting, pragma } from './database.ts';
import { decodeError, encodeError } from './messages.ts';
import { SqliteStore } from './sqlite-store.ts';

type CommitFault = 'none' | 'errorAfterCommit' | 'errorBeforeCommit';

const SQLITE_IOERR_FSYNC = 1_034;

/** What SQLite reports when a sync fails. */
function ioError(): Error {
  return Object.assign(new Error('disk I/O error'), { errcode: SQLITE_IOERR_FSYNC });
}

/** `database`, but its COMMITs go wrong as `faults` says, one after the other, then right. */
function withFaults(database: DatabaseSync, faults: CommitFault[]): DatabaseSync {
  const commit = (statement: StatementSync) => ({
    run: () => {
      const fault = faults.shift() ?? 'none';
      if (fault === 'errorBeforeCommit') throw ioError();
      const result = statement.run();
      if (fault === 'errorAfterCommit') throw ioError();
      return result;
    },
  });
  return new Proxy(database, {
    get: (target, property) => {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      if (property !== 'prepare') return value.bind(target);
      return (sql: string) => (sql === 'COMMIT' ? commit(target.prepare(sql)) : target.prepare(sql));
    },
  });
}

let temporary: ReturnType<typeof temporaryDirectory>;
let database: DatabaseSync;
let faults: CommitFault[];
let log: StoreLog;
let leadership: Leadership;
let attempts: StoreMethod[];

beforeEach(async () => {
  temporary = temporaryDirectory();
  const directory = join(temporary.path, 'log');
  makeDirectory(directory);
  database = openForWriting(directory, 'lineage-1', {});
  faults = [];
  attempts = [];
  const store = new SqliteStore(withFaults(database, faults));
  const call = async <M extends StoreMethod>(method: M, args: StoreArguments<M>): Promise<StoreReply<M>> => {
    attempts.push(method);
    try {
      return invoke(store, method, args);
    } catch (error) {
      throw decodeError(encodeError(error, 'here'));
    }
  };
  const close = async (): Promise<void> => store.close();
  log = new StoreLog(
    'lineage-1',
    { call, close },
    { pause: async () => undefined, newId: () => 'snapshot-1' },
  );
  leadership = await log.campaign('server-a');
  attempts = [];
});

afterEach(async () => {
  await log.close();
  temporary.remove();
});

describe('an append whose COMMIT reports an error', () => {
  test('although it went through: found at the head by the next transaction, there once', async () => {
    faults.push('errorAfterCommit');
    expect(await log.append(leadership, entryAfter(START))).toBe('committed');
    expect(attempts).toEqual(['append', 'append']);
    expect(await readAll(log, 1)).toHaveLength(1);
  });

  test('and did not go through: sent again', async () => {
    faults.push('errorBeforeCommit', 'errorBeforeCommit');
    expect(await log.append(leadership, entryAfter(START))).toBe('committed');
    expect(attempts).toEqual(['append', 'append', 'append']);
    expect(await readAll(log, 1)).toHaveLength(1);
  });

  test('for longer than the tries: rejected, and nothing of it is there', async () => {
    faults.push(...Array.from({ length: 5 }, () => 'errorBeforeCommit' as const));
    const entry = entryAfter(START);
    await expect(log.append(leadership, entry)).rejects.toThrow(LogUnavailableError);
    expect(await log.head()).toEqual(START);
    expect(await log.append(leadership, entry)).toBe('committed');
  });

  test('after the tries it turns out to be there', async () => {
    faults.push(...Array.from({ length: 4 }, () => 'errorBeforeCommit' as const), 'errorAfterCommit');
    const entry = entryAfter(START);
    await expect(log.append(leadership, entry)).rejects.toThrow(LogUnavailableError);
    expect(await log.append(leadership, entry)).toBe('committed');
    expect(await readAll(log, 1)).toHaveLength(1);
    expect(log.unknownOutcomes).toBe(5);
  });
});

test('every other write may have an unknown outcome too, and happens once', async () => {
  const entry = entryAfter(START);
  await log.append(leadership, entry);
  let manifest: SnapshotManifest | undefined;
  for (const fault of ['errorAfterCommit', 'errorBeforeCommit'] as const) {
    faults.push(fault);
    const writer = new SnapshotWriter(log, await log.openSnapshot(leadership));
    faults.push(fault);
    await writer.write(new Uint8Array([1]));
    faults.push(fault);
    await writer.write(new Uint8Array([2]));
    manifest = writer.manifest(placeAt(entry));
    if (fault === 'errorAfterCommit') database.exec(`DELETE FROM snapshot_chunks; DELETE FROM snapshots`);
  }
  faults.push('errorAfterCommit');
  await log.commitSnapshot(leadership, manifest as SnapshotManifest);
  expect(manifest?.chunkHashes).toHaveLength(2);
  expect(await log.snapshots()).toEqual([manifest]);
  faults.push('errorAfterCommit');
  await log.resign(leadership);
  expect(await log.append(leadership, entryAfter(entry))).toBe('deposed');
});

test('the settings that durability rests on are in force', () => {
  const FULL = 2;
  const INCREMENTAL = 2;
  expect(pragma(database, 'synchronous')).toBe(FULL);
  expect(pragma(database, 'journal_mode')).toBe('wal');
  expect(pragma(database, 'auto_vacuum')).toBe(INCREMENTAL);
});
