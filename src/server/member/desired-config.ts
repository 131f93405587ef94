/**
 * The configuration that a replica's own file asks for, and whether that may be brought into force by it. Each replica has a file of its own, and they
 * are replaced one after the other: a new leader whose file is still the old one must not bring back what a predecessor has replaced.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import { canonicalJson } from '../../core/index.ts';
import type { Logger } from '../../platform/runtime.ts';
import { configure } from '../leader/configure.ts';
import type { Leader } from '../leader/leader.ts';

/** Configurations remembered that are in force no more. */
const SUPERSEDED_MAX = 32;

export class DesiredConfig {
  #wanted: NamespaceConfig | null;
  #inForce: string | null = null;
  readonly #superseded = new Set<string>();
  readonly #logger: Logger;
  /** Configurations are brought into force one after the other. */
  #configuring: Promise<void> = Promise.resolve();

  constructor(wanted: NamespaceConfig | null, logger: Logger) {
    this.#wanted = wanted;
    this.#logger = logger;
  }

  get wanted(): NamespaceConfig | null {
    return this.#wanted;
  }

  /** The file has changed: what it says now is wanted, also when it was in force before. */
  want(config: NamespaceConfig | null): void {
    this.#wanted = config;
    this.#superseded.delete(canonicalJson(config));
  }

  /** The log says that this is in force from now on. */
  saw(config: NamespaceConfig | null): void {
    const seen = canonicalJson(config);
    if (this.#inForce === seen) return;
    if (this.#inForce !== null) this.#superseded.add(this.#inForce);
    this.#superseded.delete(seen);
    this.#inForce = seen;
    for (const oldest of this.#superseded) {
      if (this.#superseded.size <= SUPERSEDED_MAX) break;
      this.#superseded.delete(oldest);
    }
  }

  /** Through this leader. Resolves when that was tried: what is wanted stays wanted. */
  bringIntoForce(leader: Leader): Promise<void> {
    this.#configuring = this.#configuring.then(async () => {
      const wanted = this.#wanted;
      try {
        if (await configure(leader, wanted)) this.#logger.info({}, 'a new configuration is in force');
        this.saw(wanted);
      } catch (error) {
        // Who leads no more leaves it to who does.
        if (leader.isLeading) this.#logger.error({ error }, 'the configuration is not in force');
      }
    });
    return this.#configuring;
  }

  /** Whether the file is behind: what it says was in force, and was replaced. */
  get isBehind(): boolean {
    return this.#superseded.has(canonicalJson(this.#wanted));
  }
}
