/**
 * Rule L6: what format version 1 and behaviour levels 1 and 2 were, so that a later change of either is noticed. When this test fails,
 * either the change is a mistake, or it needs a new version and a new file beside the old one. The old file stays, and old logs are
 * read and replayed for ever. LEASEHOLD_WRITE_GOLDEN=1 writes the file; before the first release that is still allowed.
 */
import { Buffer } from 'node:buffer';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { LockEvent } from '../../src/api/entry.ts';
import { bucketOf } from '../../src/api/names.ts';
import { digestOf } from '../../src/api/wire.ts';
import { chainEvents } from '../../src/core/codec/entry.ts';
import { apply, createState, type Draft, decodeEntry, encodeEntry, sha256 } from '../../src/core/index.ts';
import { SnapshotReader, writeSnapshot } from '../../src/core/snapshot.ts';
import { NaiveModel } from '../../src/history/naive-model.ts';
import { compareWithModel } from '../../src/history/replay.ts';
import { traceOf } from '../support/core.ts';
import { Random } from '../support/random.ts';
import { Generator } from './generator.ts';
import { ENTRIES, EVENTS, NAMES } from './golden/entries.ts';

const FILE = join(import.meta.dirname, 'golden', 'format-1.json');
/** Chosen because its short log has every type of command in it, every mode, and the raise from one level to the next. */
const LOG_SEED = 105_326;
const LOG_ENTRIES = 49;
const TOKENS = [1, 2, 2 ** 32, 2 ** 45 + 7, 2 ** 53 - 1];

interface Golden {
  /** By type of command: the bytes of its entry, hex. */
  readonly entries: Readonly<Record<string, string>>;
  /** By type of event: the hash of a chain that consists of it alone. */
  readonly events: Readonly<Record<string, string>>;
  readonly allEvents: string;
  readonly buckets: Readonly<Record<string, number>>;
  readonly digests: Readonly<Record<string, number>>;
  /** A log: the bytes of each entry, base64. */
  readonly log: readonly string[];
  readonly snapshotOfLog: readonly string[];
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const every: readonly LockEvent[] = Object.values(EVENTS);

function makeGolden(): Golden {
  const { log, snapshot } = makeLog();
  return {
    entries: Object.fromEntries(
      Object.entries(ENTRIES).map(([type, entry]) => [type, hex(encodeEntry(entry).bytes)]),
    ),
    events: Object.fromEntries(every.map((event) => [event.type, chainEvents('', [event])])),
    allEvents: chainEvents('previous', every),
    buckets: Object.fromEntries(NAMES.map((name) => [name, bucketOf(name)])),
    digests: Object.fromEntries(TOKENS.map((token) => [token, digestOf(token)])),
    log,
    snapshotOfLog: snapshot,
  };
}

/** A log of a random run, with everything in it that happens in one. */
function makeLog(): { readonly log: string[]; readonly snapshot: string[] } {
  const random = new Random(LOG_SEED);
  const generator = new Generator(random, { isLarge: false, oneRequestPerKey: false });
  const state = createState('golden');
  let previous = '';
  const log: string[] = [];
  for (let i = 0; i < LOG_ENTRIES; i++) {
    const { afterMs, commands } = i === 0 ? generator.first() : generator.next(state);
    const [first] = commands;
    const epoch = first?.type === 'takeOver' ? first.epoch : state.epoch;
    const place = { lineage: 'golden', epoch, index: state.index + 1, at: state.at + afterMs };
    const draft: Draft = { format: 1, behaviour: state.behaviour, ...place, commands };
    apply(state, draft);
    const { bytes, hash } = encodeEntry({ ...draft, previous, eventHash: state.eventHash, wallMs: i });
    previous = hash;
    log.push(Buffer.from(bytes).toString('base64'));
  }
  return { log, snapshot: [...writeSnapshot(state)] };
}

if (process.env.LEASEHOLD_WRITE_GOLDEN === '1') {
  writeFileSync(FILE, `${JSON.stringify(makeGolden(), null, 2)}\n`);
}
const golden = JSON.parse(readFileSync(FILE, 'utf8')) as Golden;

describe('format version 1', () => {
  it.each(Object.entries(ENTRIES))('rule L6: an entry with %s has the bytes it always had', (type, entry) => {
    const bytes = golden.entries[type] ?? '';
    expect(hex(encodeEntry(entry).bytes)).toBe(bytes);
    expect(decodeEntry(Buffer.from(bytes, 'hex'))).toEqual(entry);
  });

  it('rule C14: every event has the hash it always had', () => {
    for (const event of every) expect(chainEvents('', [event]), event.type).toBe(golden.events[event.type]);
    expect(chainEvents('previous', every)).toBe(golden.allEvents);
    expect(new Set(Object.values(golden.events)).size).toBe(every.length);
  });

  it('rule S3: buckets of names and digests of tokens are what they always were', () => {
    for (const name of NAMES) expect(bucketOf(name), name).toBe(golden.buckets[name]);
    for (const token of TOKENS) expect(digestOf(token)).toBe(golden.digests[String(token)]);
  });
});

describe('a log recorded with behaviour levels 1 and 2', () => {
  it('rules L6, C15: is replayed to the event hashes it was written with', () => {
    const state = createState('golden');
    const model = new NaiveModel('golden');
    const types = new Set<string>();
    const granted = new Set<string>();
    const levels = new Set<number>();
    let previous = '';
    for (const line of golden.log) {
      const bytes = Buffer.from(line, 'base64');
      const entry = decodeEntry(bytes);
      expect(entry.previous).toBe(previous);
      const { events, results } = apply(state, entry);
      expect(state.eventHash).toBe(entry.eventHash);
      expect(compareWithModel(model, entry, events, results)).toBeNull();
      previous = sha256(bytes);
      for (const { type } of entry.commands) types.add(type);
      for (const event of events) {
        if (event.type === 'granted') granted.add(event.joined ? 'joined' : event.mode);
      }
      levels.add(entry.behaviour);
    }
    expect(state.index).toBe(LOG_ENTRIES);
    expect([...types].sort()).toEqual(Object.keys(ENTRIES).sort());
    expect([...granted].sort()).toEqual(['exclusive', 'joined', 'semaphore', 'shared']);
    expect([...levels]).toEqual([1, 2]);
    expect([...writeSnapshot(state)]).toEqual(golden.snapshotOfLog);
  });

  it('rules L6, L3: its snapshot is read back', () => {
    const reader = new SnapshotReader();
    for (const line of golden.snapshotOfLog) reader.line(line);
    const state = reader.finish();
    expect(state.index).toBe(LOG_ENTRIES);
    expect(traceOf(state)).toHaveLength(golden.snapshotOfLog.length);
  });
});
