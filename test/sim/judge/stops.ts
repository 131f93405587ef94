/**
 * Which sessions can be told nothing right now, because their application or their sidecar is stopped or dead. A session
 * may be stopped for several reasons at once; the checker hears of the first beginning and of the last end.
 */
import type { SessionId } from '../../../src/api/entry.ts';
import type { World } from '../world/world.ts';
import type { GroupJudge } from './group-judge.ts';

export interface StoppedSession {
  readonly judge: GroupJudge;
  readonly lineage: string;
  readonly session: SessionId;
}

export class Stops {
  readonly #world: World;
  readonly #reasons = new Map<string, Set<string>>();
  readonly #sessions = new Map<string, readonly StoppedSession[]>();

  constructor(world: World) {
    this.#world = world;
  }

  begin(reason: string, sessions: readonly StoppedSession[]): void {
    this.end(reason);
    this.#sessions.set(reason, sessions);
    for (const stopped of sessions) {
      const reasons = this.#reasons.get(keyOf(stopped)) ?? new Set();
      this.#reasons.set(keyOf(stopped), reasons);
      reasons.add(reason);
      if (reasons.size === 1) this.#record('clientStopped', stopped);
    }
  }

  end(reason: string): void {
    for (const stopped of this.#sessions.get(reason) ?? []) {
      const reasons = this.#reasons.get(keyOf(stopped));
      if (reasons?.delete(reason) !== true || reasons.size > 0) continue;
      this.#reasons.delete(keyOf(stopped));
      this.#record('clientResumed', stopped);
    }
    this.#sessions.delete(reason);
  }

  #record(type: 'clientStopped' | 'clientResumed', { judge, lineage, session }: StoppedSession): void {
    judge.client({ type, lineage, session, at: this.#world.nowMs });
  }
}

function keyOf({ lineage, session }: StoppedSession): string {
  return `${lineage} ${session}`;
}
