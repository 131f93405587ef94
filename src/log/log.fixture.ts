/** Builders for tests of the log: entries that chain, randomness from a seed, temporary directories. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random, Timer, Timers } from '../platform/runtime.ts';
import { createLogger, type LogLevel, systemRandom, systemTimers } from '../platform/system-runtime.ts';
import type { Leadership, LockLog, LogPosition, StoredEntry } from './port.ts';
import { EMPTY_HEAD, hashOf } from './rules.ts';
import { type SnapshotPlace, SnapshotWriter } from './snapshot-writer.ts';

/** The entry after `position`. `filler` makes two entries at one index differ. */
export function entryAfter(
  position: LogPosition,
  options: { bytes?: number; filler?: string } = {},
): StoredEntry {
  const index = position.index + 1;
  const text = `entry ${index} ${options.filler ?? ''}`;
  const bytes = new Uint8Array(Math.max(options.bytes ?? 0, text.length));
  new TextEncoder().encodeInto(text, bytes);
  return { index, bytes, hash: hashOf(bytes), previous: position.hash };
}

/** Appends `count` entries after the head and returns them. */
export async function appendEntries(
  log: LockLog,
  leadership: Leadership,
  count: number,
  options: { bytes?: number } = {},
): Promise<StoredEntry[]> {
  let position = await log.head();
  const entries: StoredEntry[] = [];
  for (let made = 0; made < count; made += 1) {
    const entry = entryAfter(position, options);
    const outcome = await log.append(leadership, entry);
    if (outcome !== 'committed') throw new Error(`entry ${entry.index}: ${outcome}`);
    entries.push(entry);
    position = entry;
  }
  return entries;
}

export async function readAll(log: Pick<LockLog, 'read'>, fromIndex: number): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = [];
  for await (const entry of log.read(fromIndex)) entries.push(entry);
  return entries;
}

/** Writes and commits a snapshot of `chunks` at the newest of `entries`. */
export async function takeSnapshot(
  log: LockLog,
  leadership: Leadership,
  at: LogPosition,
  chunks: readonly Uint8Array[],
  keepFrom?: number,
): Promise<void> {
  const writer = new SnapshotWriter(log, await log.openSnapshot(leadership));
  for (const chunk of chunks) await writer.write(chunk);
  await log.commitSnapshot(leadership, writer.manifest(placeAt(at)), keepFrom);
}

/** The log does not look at event hashes, so any text does. */
export function placeAt({ index, hash }: LogPosition): SnapshotPlace {
  return { index, hash, eventHash: `events up to ${index}` };
}

/** A small generator (mulberry32): the same seed gives the same numbers. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const hexByte = (): string =>
    Math.floor(fraction() * 256)
      .toString(16)
      .padStart(2, '0');
  return { fraction, hex: (bytes) => Array.from({ length: bytes }, hexByte).join('') };
}

/** Seed of this run: the one given (LEASEHOLD_SEED), or a new one. */
export function seedOfRun(fromEnvironment: string | undefined): number {
  const given = Number(fromEnvironment);
  return Number.isSafeInteger(given) && given > 0 ? given : Math.floor(systemRandom.fraction() * 2 ** 31) + 1;
}

export function temporaryDirectory(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'leasehold-log-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Ports of the embedded engine, as tests use them. */
export function systemPorts(logLevel: LogLevel = 'silent') {
  return { timers: systemTimers, random: systemRandom, logger: createLogger(logLevel) };
}

/** Virtual time: runs when told to, or (`running`) as fast as promises settle. */
export class VirtualTimers implements Timers {
  readonly #running: boolean;
  #nowMs = 0;
  #waiting: { readonly dueMs: number; readonly action: () => void }[] = [];

  constructor(options: { readonly running: boolean }) {
    this.#running = options.running;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, action: () => void): Timer {
    const timer = { dueMs: this.#nowMs + delayMs, action };
    this.#waiting.push(timer);
    if (this.#running) systemTimers.soon(() => this.#step(Number.POSITIVE_INFINITY));
    return {
      cancel: () => {
        this.#waiting = this.#waiting.filter((other) => other !== timer);
      },
    };
  }

  soon(action: () => void): void {
    this.after(0, action);
  }

  /** Runs timers in order of time until `untilMs` (default: until none waits), letting promises settle in between. */
  async run(untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    await settle();
    while (this.#step(untilMs)) await settle();
    if (Number.isFinite(untilMs)) this.#nowMs = untilMs;
  }

  #step(untilMs: number): boolean {
    const next = this.#waiting.toSorted((a, b) => a.dueMs - b.dueMs)[0];
    if (next === undefined || next.dueMs > untilMs) return false;
    this.#waiting = this.#waiting.filter((other) => other !== next);
    this.#nowMs = next.dueMs;
    next.action();
    return true;
  }
}

/** Lets all promise callbacks that are due run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    systemTimers.soon(resolve);
  });
}

export const START = EMPTY_HEAD;

/** Bytes of a snapshot's chunk, as long as a thousand times `text`. */
export function chunk(text: string): Uint8Array {
  return new TextEncoder().encode(text.repeat(1_000));
}
