/**
 * Writing an embedded log. Every step is one transaction that first compares the fence with the stored one, so a deposed leader cannot
 * change anything, whatever it believes (rules L1, L3, L4). SQLite syncs the write-ahead log before COMMIT returns.
 *
 * When COMMIT fails, nobody knows whether it happened; the same connection stays in use, because a new one could take for committed what
 * was written but never synced. The step is then simply done again, and its own transaction finds out (rule L2).
 */
import { ok as assert } from 'node:assert';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PAGE_BYTES_MAX, PAGE_ENTRIES_MAX } from '../limits.ts';
import {
  type AppendOutcome,
  type Birth,
  type LeaderRecord,
  type Leadership,
  type LogPosition,
  type LogSpace,
  type OpenSnapshot,
  ReplacedError,
  type RollBackProof,
  type SnapshotManifest,
  type Standing,
  type StoredEntry,
} from '../port.ts';
import {
  checkAuditCursor,
  checkManifest,
  checkNewChunk,
  checkSnapshotPlace,
  hashOf,
  judgeAppend,
  keptSnapshots,
  lastTrimmed,
  requireLeader,
} from '../rules.ts';
import type { LogStore, NewLife } from '../store.ts';
import { pragma } from './database.ts';
import { integerOf, type Row, textOf } from './rows.ts';
import { asCorrupt, type LogState, SqliteReader } from './sqlite-reader.ts';

/** Pages returned to the file system in one step. */
const VACUUM_PAGES_PER_STEP = 1_024;
/** Chunks deleted in one step. */
const CHUNKS_PER_STEP = 32;
/** Free space that stays in the file for the next entries, so that trimming does not move the same pages for ever. */
const FREE_BYTES_KEPT = 64 * 1024 * 1024;

export interface SqliteStoreOptions {
  readonly freeBytesKept?: number | undefined;
}

export class SqliteStore extends SqliteReader implements LogStore {
  readonly #freePagesKept: number;
  readonly #beginWrite: StatementSync;
  readonly #commitWrite: StatementSync;
  readonly #insertEntry: StatementSync;
  readonly #setHead: StatementSync;

  constructor(database: DatabaseSync, options: SqliteStoreOptions = {}) {
    super(database);
    const pageBytes = Number(pragma(database, 'page_size'));
    this.#freePagesKept = Math.floor((options.freeBytesKept ?? FREE_BYTES_KEPT) / pageBytes);
    this.#beginWrite = database.prepare('BEGIN IMMEDIATE');
    this.#commitWrite = database.prepare('COMMIT');
    this.#insertEntry = database.prepare('INSERT INTO entries VALUES (?, ?, ?, ?)');
    this.#setHead = database.prepare(
      'UPDATE log_state SET head_index = ?, head_hash = ?, retained_bytes = retained_bytes + ?',
    );
  }

  campaign(serverId: string): Leadership {
    return this.#writing((state) => {
      const epoch = state.epoch + 1;
      const fence = `${state.lineage}/${epoch}`;
      this.#run('UPDATE log_state SET epoch = ?, fence = ?, server_id = ?', epoch, fence, serverId);
      this.#run(`UPDATE snapshots SET status = 'dropped' WHERE status = 'open'`);
      const after = this.readState();
      assert(after.epoch === epoch && after.fence === fence, 'the new fence is in place');
      assert(after.head.index === state.head.index, 'a campaign does not move the head');
      return { serverId, epoch, fence };
    }, 'campaign');
  }

  /** The seal key, if there is none yet. */
  keepSealKey(sealKey: string): void {
    this.#writing(() => {
      this.#run(`INSERT OR IGNORE INTO log_life VALUES (1, ?, 0, 0, '')`, sealKey);
    }, 'keep the seal key');
  }

  birth(): Birth {
    const row = this.#life();
    return {
      sealKey: textOf(row, 'seal_key'),
      tokenFloor: integerOf(row, 'token_floor'),
      quietMs: integerOf(row, 'quiet_ms'),
    };
  }

  standing(): Standing {
    const { lineage, head } = this.readState();
    const halted = textOf(this.#life(), 'halted');
    return { lineage, head, halted: halted === '' ? null : (JSON.parse(halted) as RollBackProof) };
  }

  halt(proof: RollBackProof): void {
    this.#writing((state) => {
      if (proof.lineage !== state.lineage) return;
      this.#run(`UPDATE log_life SET halted = ? WHERE halted = ''`, JSON.stringify(proof));
      this.#run(`UPDATE log_state SET fence = ''`);
      assert(this.standing().halted !== null, 'the proof of the halt is kept');
      assert(this.readState().fence === '', 'nobody leads a halted log');
    }, 'halt');
  }

  beginLineage(from: string, { lineage, tokenFloor, quietMs }: NewLife): void {
    this.#writing((state) => {
      if (state.lineage === lineage) return;
      if (state.lineage !== from) throw new ReplacedError();
      for (const table of ['entries', 'snapshots', 'snapshot_chunks', 'audit_cursor']) {
        this.#run(`DELETE FROM ${table}`);
      }
      this.#run(
        `UPDATE log_state SET lineage = ?, fence = '', head_index = 0, head_hash = '', first_index = 1,
         first_previous = '', retained_bytes = 0`,
        lineage,
      );
      this.#run(`UPDATE log_life SET token_floor = ?, quiet_ms = ?, halted = ''`, tokenFloor, quietMs);
      assert(this.readState().head.index === 0, 'a new life begins with an empty log');
      assert(this.standing().lineage === lineage, 'the new lineage is in place');
    }, 'begin a lineage');
  }

  leader(): LeaderRecord | null {
    const row = this.database.prepare('SELECT server_id, epoch, fence FROM log_state').get();
    assert(row !== undefined, 'a log has a state');
    if (textOf(row, 'fence') === '') return null;
    return { serverId: textOf(row, 'server_id'), epoch: integerOf(row, 'epoch') };
  }

  evict(epoch: number): boolean {
    return this.#writing((state) => {
      if (state.fence === '' || state.epoch !== epoch) return false;
      this.#run(`UPDATE log_state SET fence = ''`);
      const after = this.readState();
      assert(after.fence === '', 'nobody leads after an eviction');
      assert(after.epoch === state.epoch, 'an eviction keeps the epoch');
      return true;
    }, 'evict');
  }

  append(leadership: Leadership, entry: StoredEntry): AppendOutcome {
    // Before the transaction: a hash of half a megabyte takes longer than the rest.
    if (hashOf(entry.bytes) !== entry.hash)
      throw new RangeError(`entry ${entry.index} does not match its hash`);
    return this.#writing((state) => {
      const verdict = judgeAppend(state, leadership, entry);
      if (verdict === 'deposed') return 'deposed';
      if (verdict === 'repeat') return 'committed';
      const inserted = this.#insertEntry.run(entry.index, entry.previous, entry.hash, entry.bytes);
      const moved = this.#setHead.run(entry.index, entry.hash, entry.bytes.byteLength);
      assert(inserted.changes === 1, 'exactly one entry was added');
      assert(moved.changes === 1, 'exactly one head was moved');
      return 'committed';
    }, 'append');
  }

  openSnapshot(leadership: Leadership, id: string): void {
    this.#writing((state) => {
      requireLeader(state, leadership, 'open a snapshot');
      if (this.#snapshotStatus(id) === 'open') return;
      this.#run(`UPDATE snapshots SET status = 'dropped' WHERE status = 'open'`);
      const made = this.#run(`INSERT INTO snapshots VALUES (?, 'open', 0, '', '', 0, '')`, id);
      assert(made === 1, 'exactly one snapshot was opened');
      assert(this.#snapshotStatus(id) === 'open', 'it is the one that was asked for');
    }, 'open a snapshot');
  }

  openedSnapshot(): OpenSnapshot | null {
    const row = this.database.prepare(`SELECT id FROM snapshots WHERE status = 'open'`).get();
    if (row === undefined) return null;
    const id = textOf(row, 'id');
    return { id, serverId: null, chunks: this.#chunkCount(id), offer: null };
  }

  /** A log in a file has one process, so no standby. */
  claimSnapshot(): boolean {
    return false;
  }

  offerSnapshot({ id }: SnapshotManifest): void {
    throw new RangeError(`snapshot ${id} was claimed by nobody`);
  }

  writeChunk(id: string, number: number, chunk: Uint8Array): void {
    const chunkHash = hashOf(chunk);
    this.#writing(() => {
      if (this.#snapshotStatus(id) !== 'open') throw new RangeError(`snapshot ${id} is not open`);
      const there = this.database
        .prepare('SELECT hash FROM snapshot_chunks WHERE snapshot_id = ? AND number = ?')
        .get(id, number);
      if (there !== undefined && textOf(there, 'hash') === chunkHash) return;
      checkNewChunk(number, this.#chunkCount(id), chunk);
      const made = this.#run('INSERT INTO snapshot_chunks VALUES (?, ?, ?, ?)', id, number, chunkHash, chunk);
      assert(made === 1, 'exactly one chunk was written');
    }, 'write a chunk');
  }

  commitSnapshot(leadership: Leadership, manifest: SnapshotManifest, keepFrom: number): void {
    this.#writing((state) => {
      requireLeader(state, leadership, 'commit a snapshot');
      const { id, index, entryHash, eventHash, chunkHashes, bytes } = manifest;
      const before = this.committedSnapshots();
      if (before.some((same) => same.id === id && same.index === index)) return;
      if (this.#snapshotStatus(id) !== 'open') throw new RangeError(`snapshot ${id} is not open`);
      checkSnapshotPlace({ index, hash: entryHash }, before[0]?.index ?? 0, this.hashAt(index));
      checkManifest(manifest, this.#chunkCount(id));
      this.#run(
        `UPDATE snapshots SET status = 'committed', entry_index = ?, entry_hash = ?, event_hash = ?,
         chunk_hashes = ?, bytes = ? WHERE id = ?`,
        index,
        entryHash,
        eventHash,
        chunkHashes.join(''),
        bytes,
        id,
      );
      const all = [manifest, ...before];
      const kept = new Set(keptSnapshots(all, keepFrom));
      for (const old of all.filter((one) => !kept.has(one))) {
        this.#run(`UPDATE snapshots SET status = 'dropped' WHERE id = ?`, old.id);
      }
      const newest = this.committedSnapshots()[0];
      assert(newest !== undefined && newest.id === id, 'the newest snapshot is the one just made');
      assert(newest.chunkHashes.length === chunkHashes.length, 'its manifest lists all its chunks');
    }, 'commit a snapshot');
  }

  trimStep(leadership: Leadership, upTo: number): boolean {
    return this.#writing((state) => {
      requireLeader(state, leadership, 'trim the log');
      return this.#trimEntries(state, upTo) || this.#trimSnapshots() || this.#giveBackPages();
    }, 'trim');
  }

  auditCursor(): number | null {
    const row = this.database.prepare('SELECT entry_index FROM audit_cursor').get();
    return row === undefined ? null : integerOf(row, 'entry_index');
  }

  setAuditCursor(leadership: Leadership, index: number | null): void {
    this.#writing((state) => {
      requireLeader(state, leadership, 'move the audit cursor');
      checkAuditCursor(this.auditCursor(), index);
      if (index === null) this.#run('DELETE FROM audit_cursor');
      else this.#run('INSERT OR REPLACE INTO audit_cursor VALUES (1, ?)', index);
      assert(this.auditCursor() === index, 'the audit cursor stands where it was put');
    }, 'move the audit cursor');
  }

  /** It is alone. */
  compareMembers(): null {
    return null;
  }

  /** The disk is the only limit. */
  space(): LogSpace | null {
    return null;
  }

  reclaim(): void {
    // A trim gives back what it frees.
  }

  resign(leadership: Leadership): void {
    this.#writing((state) => {
      if (state.fence !== leadership.fence) return;
      this.#run(`UPDATE log_state SET fence = ''`);
      const after = this.readState();
      assert(after.fence === '', 'nobody leads after a resignation');
      assert(after.epoch === state.epoch, 'a resignation keeps the epoch');
    }, 'resign');
  }

  /** Deletes one batch of entries up to the older snapshot; true = there was something to delete. */
  #trimEntries(state: LogState, upTo: number): boolean {
    const lastToGo = lastTrimmed(this.committedSnapshots(), upTo);
    if (lastToGo < state.firstIndex) return false;
    const batch = this.database
      .prepare(
        'SELECT entry_index, hash, length(bytes) AS size FROM entries WHERE entry_index <= ? ORDER BY entry_index LIMIT ?',
      )
      .all(lastToGo, PAGE_ENTRIES_MAX);
    let bytes = 0;
    let last: LogPosition = { index: state.firstIndex - 1, hash: state.firstPrevious };
    for (const row of batch) {
      const size = integerOf(row, 'size');
      if (bytes > 0 && bytes + size > PAGE_BYTES_MAX) break;
      bytes += size;
      last = { index: integerOf(row, 'entry_index'), hash: textOf(row, 'hash') };
    }
    const removed = this.#run('DELETE FROM entries WHERE entry_index <= ?', last.index);
    assert(removed === last.index + 1 - state.firstIndex, 'the entries removed were consecutive');
    assert(last.index <= lastToGo && bytes <= state.retainedBytes, 'nothing above the older snapshot goes');
    this.#run(
      'UPDATE log_state SET first_index = ?, first_previous = ?, retained_bytes = retained_bytes - ?',
      last.index + 1,
      last.hash,
      bytes,
    );
    return true;
  }

  #trimSnapshots(): boolean {
    const dropped = this.database.prepare(`SELECT id FROM snapshots WHERE status = 'dropped' LIMIT 1`).get();
    if (dropped === undefined) return false;
    const id = textOf(dropped, 'id');
    const removed = this.#run(
      `DELETE FROM snapshot_chunks WHERE rowid IN
         (SELECT rowid FROM snapshot_chunks WHERE snapshot_id = ? LIMIT ?)`,
      id,
      CHUNKS_PER_STEP,
    );
    if (removed < CHUNKS_PER_STEP) this.#run('DELETE FROM snapshots WHERE id = ?', id);
    return true;
  }

  #giveBackPages(): boolean {
    const surplus = Number(pragma(this.database, 'freelist_count')) - this.#freePagesKept;
    if (surplus <= 0) return false;
    this.database.exec(`PRAGMA incremental_vacuum(${Math.min(surplus, VACUUM_PAGES_PER_STEP)})`);
    return surplus > VACUUM_PAGES_PER_STEP;
  }

  #life(): Row {
    const row = this.database.prepare('SELECT * FROM log_life').get();
    assert(row !== undefined, 'a log knows of its life');
    return row;
  }

  #snapshotStatus(id: string): string | undefined {
    const row = this.database.prepare('SELECT status FROM snapshots WHERE id = ?').get(id);
    return row === undefined ? undefined : textOf(row, 'status');
  }

  #chunkCount(id: string): number {
    const row = this.database
      .prepare('SELECT max(number) AS last FROM snapshot_chunks WHERE snapshot_id = ?')
      .get(id);
    return row === undefined || row.last === null ? 0 : integerOf(row, 'last') + 1;
  }

  /** Rows changed. For what is too rare to keep a prepared statement. */
  #run(sql: string, ...values: (string | number | Uint8Array)[]): number {
    return Number(this.database.prepare(sql).run(...values).changes);
  }

  /** One write transaction. Nothing counts as done unless COMMIT returned. */
  #writing<T>(work: (state: LogState) => T, what: string): T {
    this.rollBack();
    try {
      this.#beginWrite.run();
      const result = work(this.readState());
      this.#commitWrite.run();
      return result;
    } catch (error) {
      this.rollBack();
      throw asCorrupt(error, what);
    }
  }
}
