/** Wall clocks that can be set: our own processes under libfaketime, which reads a file. Their monotonic clocks go on as they are. */
import { globSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupBench } from '../support/group/group-bench.ts';

export class SteppedClocks {
  readonly #folder: string;
  readonly names: readonly string[];

  private constructor(folder: string, names: readonly string[]) {
    this.#folder = folder;
    this.names = names;
  }

  /** Null: libfaketime is not installed. From their next start on these processes have clocks of their own. */
  static prepare(bench: GroupBench, names: readonly string[]): SteppedClocks | null {
    const [library] = globSync('/usr/lib/**/faketime/libfaketimeMT.so.1');
    if (library === undefined) return null;
    const clocks = new SteppedClocks(bench.folder, names);
    for (const name of names) {
      clocks.step(name, 0);
      const env = [
        `LD_PRELOAD=${library}`,
        `FAKETIME_TIMESTAMP_FILE=${clocks.#file(name)}`,
        'FAKETIME_NO_CACHE=1',
        'FAKETIME_DONT_FAKE_MONOTONIC=1',
      ];
      bench.replan(name, (planned) => ({
        ...planned,
        program: '/usr/bin/env',
        args: [...env, planned.program, ...planned.args],
      }));
    }
    return clocks;
  }

  /** Against the machine's clock. */
  step(name: string, seconds: number): void {
    writeFileSync(this.#file(name), `${seconds < 0 ? '' : '+'}${seconds}\n`);
  }

  #file(name: string): string {
    return join(this.#folder, `${name}.clock`);
  }
}
