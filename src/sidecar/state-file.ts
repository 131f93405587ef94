/**
 * The state store on disk: a journal of JSON lines, appended synchronously and without fsync: it has to outlive this process,
 * not the machine, since the pod's own volume does not either. Rewritten when it is mostly history. Its first line says
 * which format it is in (rule L6): a file of another one is left as it is, since what it keeps may still be needed.
 */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../platform/folders.ts';
import { MemoryStateStore, type RecordKey, type SidecarRecord, type StateStore } from './state-store.ts';

const REWRITE_LINES_MIN = 10_000;
/** A file that does not say its format is of this one too. */
const FORMAT = 1;

type Line =
  | { readonly format: number }
  | { readonly put: SidecarRecord }
  | { readonly remove: RecordKey }
  | { readonly removeEnvelope: string };

export class FileStateStore implements StateStore {
  readonly #path: string;
  readonly #records = new MemoryStateStore();
  #lines = 0;
  #file: number;

  /**
   * Opens or makes the file, readable by its owner alone: it holds session secrets. Throws, and changes nothing, when it is
   * of another format.
   */
  constructor(path: string) {
    this.#path = path;
    makeFolder(dirname(path));
    if (existsSync(path)) this.#read();
    this.#file = this.#rewrite();
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

  #append(line: Line): void {
    // The line end comes first: behind a write that got only half through (a full disk) the next line stays whole.
    writeFileSync(this.#file, `\n${JSON.stringify(line)}`);
    this.#lines++;
    if (this.#lines < Math.max(REWRITE_LINES_MIN, 4 * this.#records.size)) return;
    closeSync(this.#file);
    this.#file = this.#rewrite();
  }

  /** The last line may be cut off where the process ended; nothing was answered on its strength. */
  #read(): void {
    for (const text of readFileSync(this.#path, 'utf8').split('\n')) {
      const line = parse(text);
      if (line === null) continue;
      if ('format' in line) this.#checkFormat(line.format);
      else if ('put' in line) this.#records.put(line.put);
      else if ('remove' in line) this.#records.remove(line.remove);
      else this.#records.removeEnvelope(line.removeEnvelope);
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
    const puts = this.#records.load().map((put) => ({ put }) satisfies Line);
    const lines = [{ format: FORMAT } satisfies Line, ...puts].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(next, lines.join(''), { mode: 0o600 });
    renameSync(next, this.#path);
    this.#lines = lines.length;
    return openSync(this.#path, 'a', 0o600);
  }
}

function parse(text: string): Line | null {
  if (text === '') return null;
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null ? (line as Line) : null;
  } catch {
    return null;
  }
}
