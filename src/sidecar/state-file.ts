/**
 * The state store on disk: a journal of JSON lines, appended synchronously and without fsync: it has to outlive this process,
 * not the machine, since the pod's own volume does not either. Rewritten when it is mostly history. Its first line says
 * which format it is in (rule L6): a file of another one is left as it is, since what it keeps may still be needed.
 */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../platform/folders.ts';
import { readLine, type StateLine } from './state-line.ts';
import { MemoryStateStore, type RecordKey, type SidecarRecord, type StateStore } from './state-store.ts';

const REWRITE_LINES_MIN = 10_000;
/** A file that does not say its format is of this one too. */
const FORMAT = 1;

export class FileStateStore implements StateStore {
  readonly #path: string;
  readonly #records = new MemoryStateStore();
  #lines = 0;
  #damaged = 0;
  #problem: string | null = null;
  #file: number;

  /**
   * Opens or makes the file, readable by its owner alone: it holds session secrets. Throws, and changes nothing, when it is
   * of another format.
   */
  constructor(path: string) {
    this.#path = path;
    makeFolder(dirname(path));
    const isThere = existsSync(path);
    if (isThere) this.#read();
    try {
      this.#file = this.#rewrite();
    } catch (error) {
      if (!isThere) throw error;
      // What is there is gone on with, on a full disk too.
      this.#file = openSync(path, 'a');
      this.#problem = String(error);
    }
  }

  get problem(): string | null {
    if (this.#problem !== null) this.#catchUp();
    return this.#problem;
  }

  /** Lines that could not be read when it was opened, and are left out. */
  get damaged(): number {
    return this.#damaged;
  }

  load(): readonly SidecarRecord[] {
    return this.#records.load();
  }

  put(record: SidecarRecord): void {
    this.#records.put(record);
    this.#append({ put: record });
  }

  remove(record: RecordKey): void {
    this.#records.remove(record);
    this.#append({ remove: record });
  }

  removeEnvelope(id: string): void {
    this.#records.removeEnvelope(id);
    this.#append({ removeEnvelope: id });
  }

  close(): void {
    closeSync(this.#file);
  }

  #append(line: StateLine): void {
    if (this.#problem !== null) {
      this.#catchUp();
      return;
    }
    this.#try(() => {
      // The line end comes first: behind a write that got only half through (a full disk) the next line stays whole.
      writeFileSync(this.#file, `\n${JSON.stringify(line)}`);
      this.#lines++;
      if (this.#lines >= Math.max(REWRITE_LINES_MIN, 4 * this.#records.size)) this.#replace();
    });
  }

  /** All that is in memory, once there is room. Little is tried first. */
  #catchUp(): void {
    this.#try(() => {
      writeFileSync(this.#file, '\n');
      this.#replace();
    });
  }

  #try(write: () => void): void {
    try {
      write();
      this.#problem = null;
    } catch (error) {
      this.#problem = String(error);
    }
  }

  #replace(): void {
    const file = this.#rewrite();
    closeSync(this.#file);
    this.#file = file;
  }

  /** The last line may be cut off where the process ended; nothing was answered on its strength. */
  #read(): void {
    for (const text of this.#text().split('\n')) {
      if (text === '') continue;
      const line = readLine(text);
      if (line === null) this.#damaged++;
      else if ('format' in line) this.#checkFormat(line.format);
      else if ('put' in line) this.#records.put(line.put);
      else if ('remove' in line) this.#records.remove(line.remove);
      else this.#records.removeEnvelope(line.removeEnvelope);
    }
  }

  #text(): string {
    try {
      return readFileSync(this.#path, 'utf8');
    } catch (error) {
      throw new Error(`${this.#path} cannot be read: ${String(error)}`, { cause: error });
    }
  }

  #checkFormat(format: unknown): void {
    if (format === FORMAT) return;
    const found = `${this.#path} is of format ${JSON.stringify(format)}; this program knows format ${FORMAT}.`;
    throw new Error(
      `${found} Run the program that wrote it, or move the file away: the sessions it keeps are over then.`,
    );
  }

  #rewrite(): number {
    const next = `${this.#path}.next`;
    // One that is left over would keep its mode.
    rmSync(next, { force: true });
    const puts = this.#records.load().map((put) => ({ put }) satisfies StateLine);
    const lines = [{ format: FORMAT } satisfies StateLine, ...puts].map(
      (line) => `${JSON.stringify(line)}\n`,
    );
    try {
      writeFileSync(next, lines.join(''), { mode: 0o600 });
    } catch (error) {
      rmSync(next, { force: true });
      throw error;
    }
    renameSync(next, this.#path);
    this.#lines = lines.length;
    return openSync(this.#path, 'a', 0o600);
  }
}
