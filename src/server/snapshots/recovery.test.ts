/** From the log to a state, entry by entry checked against what its leader recorded: rule C14. */
import { Buffer } from 'node:buffer';
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig, openCommand, takeOverCommand } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { Command, Entry, HistoryEntry } from '../../api/entry.ts';
import { apply, createState, encodeEntry, type State, sha256, writeSnapshot } from '../../core/index.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { CorruptLogError, type Leadership } from '../../log/port.ts';
import { history, type ReadableLog, recover } from './recovery.ts';

const { logger } = new VirtualRuntime();

/** A leader that can be made to record what did not happen. */
class Scribe {
  readonly log = new MemoryLog(new MemoryStore('test-lineage'));
  readonly #state: State = createState('test-lineage');
  #leadership: Leadership | null = null;
  #previous = '';

  async write(commands: readonly Command[], lies: Partial<Entry> = {}): Promise<void> {
    this.#leadership ??= await this.log.campaign('test');
    const draft = {
      format: 1,
      behaviour: 1,
      lineage: 'test-lineage',
      epoch: 1,
      index: this.#state.index + 1,
      at: this.#state.at + 10,
      commands,
    };
    apply(this.#state, draft);
    const { index } = draft;
    const { eventHash } = this.#state;
    const { bytes, hash } = encodeEntry({
      ...draft,
      wallMs: 1_000 + index,
      eventHash,
      previous: this.#previous,
      ...lies,
    });
    await this.log.append(this.#leadership, { index, bytes, hash, previous: this.#previous });
    this.#previous = hash;
  }

  async snapshot(lies: Partial<State>): Promise<void> {
    const [state, leadership] = [Object.assign(this.#state, lies), this.#leadership as Leadership];
    const id = await this.log.openSnapshot(leadership);
    const lines = [...writeSnapshot(state)].map((line) => `${line}\n`).join('');
    const bytes = Buffer.from(lines);
    await this.log.writeChunk(id, 0, bytes);
    await this.log.commitSnapshot(leadership, {
      id,
      index: state.index,
      entryHash: this.#previous,
      eventHash: state.eventHash,
      chunkHashes: [sha256(bytes)],
      bytes: bytes.byteLength,
    });
  }

  /** Two more of them, and nothing of the log is kept that they do not need. */
  async snapshotsTwice(): Promise<void> {
    for (const _ of ['older', 'newest']) {
      await this.write([openCommand()]);
      await this.snapshot({});
    }
    await this.log.trim(this.#leadership as Leadership);
  }

  async begin(): Promise<void> {
    await this.write([takeOverCommand()]);
    await this.write([{ type: 'configure', version: 1, config: namespaceConfig() }]);
    await this.write([openCommand()]);
  }
}

describe('rule C14: a replica that computes something else stops there', () => {
  test('a log that is right is read to its end', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([acquireCommand({ session: 1, key: 'k' })]);
    const { state, head, wallMs, snapshot } = await recover(scribe.log, logger);
    expect(state.locks.get('a')?.hold?.record.session.id).toBe(1);
    expect(head).toEqual(await scribe.log.head());
    expect(wallMs).toBe(1_004);
    expect(snapshot).toBeNull();
  });

  test('another event hash is noticed, and the entry named', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([acquireCommand({ session: 1, key: 'k' })], { eventHash: 'ab'.repeat(32) });
    await scribe.write([acquireCommand({ session: 1, key: 'l', name: 'b' })]);
    await expect(recover(scribe.log, logger)).rejects.toThrow(CorruptLogError);
    await expect(recover(scribe.log, logger)).rejects.toThrow('entry 4 causes other events here');
    const read = async (): Promise<number[]> => {
      const indexes: number[] = [];
      for await (const { index } of history(scribe.log, 1)) indexes.push(index);
      return indexes;
    };
    await expect(read()).rejects.toThrow('entry 4');
  });

  test('commands other than the ones that ran are noticed', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    const commands = [acquireCommand({ session: 1, key: 'other' })];
    await scribe.write([acquireCommand({ session: 1, key: 'k' })], { commands });
    await expect(recover(scribe.log, logger)).rejects.toThrow('entry 4 causes other events here');
  });

  test.each<[string, Partial<Entry>]>([
    ['another index', { index: 9 }],
    ['another predecessor', { previous: 'cd'.repeat(32) }],
  ])('an entry that names %s is not applied', async (_what, lies) => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([acquireCommand({ session: 1, key: 'k' })], lies);
    await expect(recover(scribe.log, logger)).rejects.toThrow('says that it is entry');
  });

  test('an entry of another lineage is not applied', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([acquireCommand({ session: 1, key: 'k' })], { lineage: 'other' });
    await expect(recover(scribe.log, logger)).rejects.toThrow('another lineage');
  });
});

describe('rule C15: a program that is too old for the group stops', () => {
  const TOO_OLD = 'this group is at behaviour level 3, and this program knows levels up to 2';

  test('at the raise, not at the entry after it: it must not lead in between', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([{ type: 'raiseBehaviour', level: 3 }]);
    await expect(recover(scribe.log, logger)).rejects.toThrow(TOO_OLD);
  });

  test('at a snapshot of that level, which is not skipped as a bad one would be', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.snapshot({ behaviour: 3 });
    await expect(recover(scribe.log, logger)).rejects.toThrow(TOO_OLD);
  });

  test('one of its own level goes on', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([{ type: 'raiseBehaviour', level: 2 }]);
    await scribe.snapshot({});
    expect((await recover(scribe.log, logger)).state.behaviour).toBe(2);
  });
});

describe('rule L4: who stood still while it read a log that was trimmed meanwhile begins again', () => {
  /** The log of `scribe`; in the middle of the first such call its leader goes on. */
  function goingOn(scribe: Scribe, call: 'read' | 'readChunk'): ReadableLog {
    const { log } = scribe;
    let isBefore = true;
    const goOn = async (at: typeof call): Promise<void> => {
      if (!isBefore || at !== call) return;
      isBefore = false;
      await scribe.snapshotsTwice();
    };
    return {
      lineage: log.lineage,
      snapshots: () => log.snapshots(),
      readChunk: async (manifest, chunk) => {
        await goOn('readChunk');
        return log.readChunk(manifest, chunk);
      },
      async *read(fromIndex) {
        await goOn('read');
        yield* log.read(fromIndex);
      },
    };
  }

  test.each(['read', 'readChunk'] as const)(
    'in the middle of %s, and calls no snapshot bad',
    async (call) => {
      const runtime = new VirtualRuntime();
      const scribe = new Scribe();
      await scribe.begin();
      await scribe.snapshot({});
      const { state, head, snapshot } = await recover(goingOn(scribe, call), runtime.logger);
      expect(head).toEqual(await scribe.log.head());
      expect(state.sessions.size).toBe(3);
      expect(snapshot?.index).toBe(head.index);
      expect(runtime.logged).toEqual([]);
    },
  );

  test('a log whose snapshots are all bad is not read for ever: it is damaged', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.snapshotsTwice();
    const readChunk = () => Promise.reject(new CorruptLogError('bad'));
    const log = { lineage: 'test-lineage', snapshots: () => scribe.log.snapshots(), readChunk };
    const bad: ReadableLog = { ...log, read: (from) => scribe.log.read(from) };
    const why = 'none of the 2 snapshots is whole, and the log starts above index';
    await expect(recover(bad, logger)).rejects.toThrow(new RegExp(why));
    await expect(recover(bad, logger)).rejects.toThrow(CorruptLogError);
  });
});

describe('history', () => {
  test('tells what happened from an index on, with its place', async () => {
    const scribe = new Scribe();
    await scribe.begin();
    await scribe.write([acquireCommand({ session: 1, key: 'k' })]);
    const entries: HistoryEntry[] = [];
    for await (const entry of history(scribe.log, 3)) entries.push(entry);
    expect(entries.map(({ index, epoch, lineage }) => ({ index, epoch, lineage }))).toEqual([
      { index: 3, epoch: 1, lineage: 'test-lineage' },
      { index: 4, epoch: 1, lineage: 'test-lineage' },
    ]);
    expect(entries[1]?.events).toMatchObject([{ type: 'granted', name: 'a' }]);
    expect(entries[1]?.wallMs).toBe(1_004);
  });

  test('an empty log has none, and recovers to nothing', async () => {
    const log = new MemoryLog(new MemoryStore('test-lineage'));
    for await (const entry of history(log, 1)) expect(entry).toBeUndefined();
    const { state, head } = await recover(log, logger);
    expect([state.index, head.index]).toEqual([0, 0]);
  });
});
