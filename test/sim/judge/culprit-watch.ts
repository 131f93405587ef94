/**
 * Rule C13: whoever sent a command that made the state machine throw loses the session, so that nothing of it is left that nobody can
 * account for: one TTL later, when nobody can believe in it any more. Where the leader changes meanwhile it may take another try.
 */
import type { Group } from '../nodes/group.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { FaultsSeen } from './faults-seen.ts';
import type { Findings } from './findings.ts';

/** Above its TTL, for clocks, stalls and the commit. */
const LATE_MS = 10_000;

export class CulpritWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #faultsSeen: FaultsSeen;

  constructor(world: World, findings: Findings, faultsSeen: FaultsSeen) {
    this.#world = world;
    this.#findings = findings;
    this.#faultsSeen = faultsSeen;
  }

  look({ alias, judge, parts, poison: { culprits } }: Group): void {
    for (const [id, sinceUs] of culprits) {
      const session = judge.state.sessions.get(id);
      const isOver = session === undefined || session.ending !== null;
      const isLate = this.#world.nowUs - sinceUs > ((judge.ttlOf(id) ?? 0) * 1.02 + LATE_MS) * US_PER_MS;
      if (!isOver && !isLate) continue;
      culprits.delete(id);
      if (isOver || !this.#faultsSeen.isClear(parts, sinceUs)) continue;
      const message = `${alias}: session ${id} sent what made the state machine throw, and lives on`;
      this.#findings.add('rule C13', message);
    }
  }
}
