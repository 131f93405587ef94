/**
 * Commands and consequences that make the state machine throw (rule C13), as a mistake in it would: which commands, is a matter of what
 * stands in them, so the same one throws wherever it is applied. Watches what the leaders make of it.
 */
import type { Command } from '../../../src/api/entry.ts';
import type { FaultProbe } from '../../../src/core/index.ts';
import type { Findings } from '../judge/findings.ts';
import type { Life } from '../world/process.ts';
import type { World } from '../world/world.ts';

class PoisonError extends Error {}

export class Poison {
  /** Sessions that must end, and since when, µs. */
  readonly culprits = new Map<number, number>();
  /** Names whose consequences throw just now. */
  readonly names = new Set<string>();
  threw = 0;
  /** Told of each throw: the state is made again, and until that is done nothing is committed. */
  onThrow: () => void = () => undefined;
  readonly #world: World;
  readonly #findings: Findings;
  #share: number;
  /** What threw in each leadership, by the process that leads: once is enough for it to know the command. */
  readonly #seen = new WeakMap<Life, Set<string>>();

  /** `share`: of the commands that throw. */
  constructor(world: World, findings: Findings, share: number) {
    this.#world = world;
    this.#findings = findings;
    this.#share = share;
  }

  /** For the leader that runs in this process. */
  probe(life: Life): FaultProbe {
    return {
      beforeCommand: (command) => {
        if (!this.isPoisonous(command)) return;
        this.#threw(life, command);
        throw new PoisonError(`${command.type} is poisonous`);
      },
      beforeConsequence: (name) => {
        if (!this.names.has(name)) return;
        this.#noteThrow();
        throw new PoisonError(`a consequence for ${name} is poisonous`);
      },
    };
  }

  /** What it knew ended with its leadership; if it leads again in the same process, it begins anew. */
  leadsNoMore(life: Life): void {
    this.#seen.delete(life);
  }

  /** The mistakes are mended. */
  stop(): void {
    this.#share = 0;
    this.names.clear();
  }

  isPoisonous(command: Command): boolean {
    return this.#share > 0 && fraction(labelOf(command)) < this.#share;
  }

  #noteThrow(): void {
    this.threw++;
    this.onThrow();
  }

  #threw(life: Life, command: Command): void {
    this.#noteThrow();
    const known = this.#seen.get(life) ?? new Set();
    this.#seen.set(life, known);
    const text = JSON.stringify(command);
    if (known.has(text)) this.#findings.add('rule C13', `it throws again, and was not remembered: ${text}`);
    known.add(text);
    if ('session' in command && !this.culprits.has(command.session))
      this.culprits.set(command.session, this.#world.nowUs);
  }
}

/** What does not change when a client sends it again; empty: of the leader or an administrator, and never poisonous. */
function labelOf(command: Command): string {
  switch (command.type) {
    case 'acquire':
    case 'cancel':
      return `${command.type} ${command.key}`;
    case 'release':
      return `release ${command.key} ${command.token}`;
    case 'openSession':
      return `open ${command.secretHash}`;
    case 'attach':
      return `attach ${command.secretHash} ${command.attach}`;
    case 'closeSession':
      return `close ${command.session} ${command.attach}`;
    default:
      return '';
  }
}

/** Evenly spread over 0 to 1; 1 for nothing. */
function fraction(label: string): number {
  if (label === '') return 1;
  let mixed = 0x811c9dc5;
  for (let i = 0; i < label.length; i++) mixed = Math.imul(mixed ^ label.charCodeAt(i), 0x01000193);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}
