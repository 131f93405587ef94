/** A leader whose state machine throws where a test says so (rule C13). */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { Command } from '../../../src/api/entry.ts';
import type { FaultProbe } from '../../../src/core/index.ts';
import { LeaderBench } from './leader-bench.ts';

/** Throws at what a test names, as often as it is reached. */
export class Poison implements FaultProbe {
  command: (command: Command) => boolean = () => false;
  name: string | null = null;
  hits = 0;

  beforeCommand(command: Command): void {
    if (this.command(command)) this.#hit(`poison command ${command.type}`);
  }

  beforeConsequence(name: string): void {
    if (name === this.name) this.#hit(`poison timer of ${name}`);
  }

  #hit(message: string): never {
    this.hits++;
    throw new Error(message);
  }
}

export async function poisoned(config: Partial<NamespaceConfig> = {}) {
  const probe = new Poison();
  const bench = await LeaderBench.start({ probe, config });
  return { probe, bench, front: bench.frontEnd() };
}
