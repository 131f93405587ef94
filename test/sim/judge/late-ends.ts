/**
 * Promise 4, strictly, where nothing stood in the way: a session of which its leader heard nothing is ended within
 * TTL + 1 s. (The checker must allow for times without commits; here it is known that there was nothing to allow for.)
 */
import type { Group } from '../nodes/group.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { FaultsSeen } from './faults-seen.ts';
import type { Findings } from './findings.ts';

const LATE_MS = 1_000;

export class LateEnds {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #faultsSeen: FaultsSeen;
  /** Slowest of the group's clocks. */
  readonly #slowestRate: number;

  constructor(world: World, findings: Findings, faultsSeen: FaultsSeen, slowestRate: number) {
    this.#world = world;
    this.#findings = findings;
    this.#faultsSeen = faultsSeen;
    this.#slowestRate = slowestRate;
  }

  look({ judge, part, parts, alias, poison }: Group): void {
    for (const [session, heardAtUs] of judge.heardAtUs) {
      // An attach that threw was a sign of life, and is in no log (rule C13): CulpritWatch sees to its end.
      if (poison.culprits.has(session)) continue;
      const ttlMs = judge.ttlOf(session) ?? 0;
      const dueUs = heardAtUs + (ttlMs / this.#slowestRate + LATE_MS) * US_PER_MS;
      // A front end that does not get ready after a change of leaders costs one TTL more (rule S4).
      const isNew = heardAtUs <= judge.tookOverAtUs + (ttlMs / this.#slowestRate) * US_PER_MS;
      const concerned = isNew ? parts : [part];
      if (this.#world.nowUs <= dueUs || !this.#faultsSeen.isClear(concerned, heardAtUs)) continue;
      const silentMs = Math.round((this.#world.nowUs - heardAtUs) / US_PER_MS);
      this.#findings.add(
        'promise 4',
        `${alias}: session ${session} was silent for ${silentMs} ms and is still alive; its TTL is ${ttlMs} ms`,
      );
    }
  }
}
