/** A `leasehold dev` whose memory and descriptors can be asked for, after a garbage collection. Linux only. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { DevProcess } from '../../support/dev/dev-process.ts';
import type { Workspace } from '../../support/dev/workspace.ts';

const MEASURE_MS_MAX = 20_000;
export const MEBIBYTE = 1024 * 1024;

export interface Memory {
  readonly rssBytes: number;
  /**
   * RSS less what V8 has for its heap. The heap is judged by what lives in it: its young generation grows to a size that a flag sets
   * (`SERVER_NODE_FLAGS`), and takes longer for it than a long test lasts.
   */
  readonly nativeBytes: number;
  /** V8's heap and what it keeps outside of it. */
  readonly heapBytes: number;
  readonly descriptors: number;
}

export class MeasuredDev {
  readonly process: DevProcess;
  readonly #file: string;
  #count = 0;

  private constructor(process: DevProcess, file: string) {
    this.process = process;
    this.#file = file;
  }

  static async start({ manifests, data, root }: Workspace): Promise<MeasuredDev> {
    const file = join(root, 'memory.json');
    const loaded = new URL('measure.mjs', import.meta.url).href;
    const given = { NODE_OPTIONS: process.env.NODE_OPTIONS, LEASEHOLD_MEASURE_FILE: undefined };
    const { NODE_OPTIONS = '' } = process.env;
    Object.assign(process.env, {
      NODE_OPTIONS: `${NODE_OPTIONS} --import=${loaded}`,
      LEASEHOLD_MEASURE_FILE: file,
    });
    const dev = DevProcess.spawn({ manifests: [manifests], data });
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    await dev.serving();
    return new MeasuredDev(dev, file);
  }

  async memory(): Promise<Memory> {
    return measure(this.process.pid, `${this.#file}.${this.process.pid}`, ++this.#count);
  }
}

/** Of a process that has loaded `measure.mjs`; `asked`: how often it was asked, this time included. */
export async function measure(pid: number, file: string, asked: number): Promise<Memory> {
  process.kill(pid, 'SIGUSR2');
  const giveUpAt = Date.now() + MEASURE_MS_MAX;
  for (;;) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '{"count":0}';
    const {
      count,
      rss = 0,
      heapUsed = 0,
      heapResident = 0,
      external = 0,
      descriptors = 0,
    } = JSON.parse(text) as Record<string, number>;
    const [nativeBytes, heapBytes] = [rss - heapResident, heapUsed + external];
    if (count === asked) return { rssBytes: rss, nativeBytes, heapBytes, descriptors };
    if (Date.now() > giveUpAt) throw new Error(`process ${pid} could not be measured`);
    await pause(20);
  }
}

export function inMebibytes({ rssBytes, nativeBytes, heapBytes, descriptors }: Memory): string {
  const of = (bytes: number) => (bytes / MEBIBYTE).toFixed(1);
  return `RSS ${of(rssBytes)} MiB (${of(nativeBytes)} not V8's), heap ${of(heapBytes)} MiB, ${descriptors} descriptors`;
}
