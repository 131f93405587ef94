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
  /** How many things stop each session now. */
  readonly #counts = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Returns how to end it; to be called once, or never for what is gone for good. */
  begin(sessions: readonly StoppedSession[]): () => void {
    for (const stopped of sessions) {
      const count = (this.#counts.get(keyOf(stopped)) ?? 0) + 1;
      this.#counts.set(keyOf(stopped), count);
      if (count === 1) this.#record('clientStopped', stopped);
    }
    return () => {
      for (const stopped of sessions) {
        const count = (this.#counts.get(keyOf(stopped)) ?? 0) - 1;
        this.#counts.set(keyOf(stopped), count);
        if (count === 0) this.#record('clientResumed', stopped);
      }
    };
  }

  #record(type: 'clientStopped' | 'clientResumed', { judge, lineage, session }: StoppedSession): void {
    this.#world.trace?.(`${lineage} session ${session}: ${type}`);
    judge.client({ type, lineage, session, at: this.#world.nowMs });
  }
}

function keyOf({ lineage, session }: StoppedSession): string {
  return `${lineage} ${session}`;
}
