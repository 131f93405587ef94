/**
 * Changes of the leader that nothing explains: in quiet times there are none, and by suspicion never more than the limit allows
 * (rule S7).
 */
import { US_PER_MS, type World } from '../world/world.ts';
import type { Findings } from './findings.ts';

/** What the last faults left behind may still cost a leader so long after them: a lease, a pause, a suspicion. */
const SETTLED_MS = 30_000;
/** Each replica has one suspicion in 30 s, so that two fit in this time. */
const WINDOW_MS = 60_000;
const SUSPICIONS_OF_ONE_MAX = 2;
/** A replica that starts does not know of suspicions before its time. */
const FORGETFUL_MS = 120_000;

export class ChangeWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #alias: string;
  #quietSinceUs = Number.POSITIVE_INFINITY;
  readonly #suspicionsUs: number[] = [];
  readonly #startsUs: number[] = [];

  #replicas = 1;

  constructor(world: World, findings: Findings, alias: string) {
    this.#world = world;
    this.#findings = findings;
    this.#alias = alias;
  }

  quiet(): void {
    this.#quietSinceUs = this.#world.nowUs;
  }

  hasReplicas(replicas: number): void {
    this.#replicas = replicas;
  }

  started(): void {
    this.#startsUs.push(this.#world.nowUs);
  }

  tookOver(reason: string): void {
    const { nowUs } = this.#world;
    if (nowUs > this.#quietSinceUs + SETTLED_MS * US_PER_MS) {
      this.#findings.add(
        'rule S7',
        `${this.#alias}: the leader changed (${reason}) though nothing was wrong`,
      );
    }
    if (reason !== 'suspicion') return;
    this.#suspicionsUs.push(nowUs);
    const recent = this.#suspicionsUs.filter((atUs) => atUs > nowUs - WINDOW_MS * US_PER_MS).length;
    const starts = this.#startsUs.filter((atUs) => atUs > nowUs - FORGETFUL_MS * US_PER_MS).length;
    if (recent <= SUSPICIONS_OF_ONE_MAX * this.#replicas + starts) return;
    const message = `${this.#alias}: ${recent} leaders were deposed by suspicion within ${WINDOW_MS} ms, with ${starts} starts`;
    this.#findings.add('rule S7', message);
  }
}
