/**
 * Rule S3: of those who have a session's secret the one that attached last has the session. The others are kept alive no more, and stop
 * believing. More than one there are when the image of a pod is restored beside it, with the sidecar's state file.
 */
import type { SessionId, Token } from '../../../src/api/entry.ts';
import type { State } from '../../../src/core/index.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { Findings } from './findings.ts';

/** Above its TTL, for clocks. */
const LATE_SHARE = 1.02;

interface Attached {
  readonly attach: number;
  readonly index: number;
  readonly atUs: number;
}

/** A sidecar. */
interface Believer {
  readonly name: string;
  /** The number under which it attached the session last; undefined: it never had it. */
  attachOf(alias: string, session: SessionId): number | undefined;
  believes(fullName: string, token: Token): boolean;
}

export class AttachWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #alias: string;
  readonly #latest = new Map<SessionId, Attached>();
  readonly #copied = new Set<SessionId>();

  constructor(world: World, findings: Findings, alias: string) {
    this.#world = world;
    this.#findings = findings;
    this.#alias = alias;
  }

  /** Numbers of sessions begin anew (rule S10). */
  beginLineage(): void {
    this.#latest.clear();
    this.#copied.clear();
  }

  /** An attach has become durable in entry `index`. */
  attached(session: SessionId, attach: number, index: number): void {
    this.#latest.set(session, { attach, index, atUs: this.#world.nowUs });
  }

  /** A second sidecar has its secret. */
  copied(session: SessionId): void {
    this.#copied.add(session);
  }

  isCopied(session: SessionId): boolean {
    return this.#copied.has(session);
  }

  /** A keepalive under this attach number was answered, as true at entry `index`: the session is this client's. */
  keptAlive(session: SessionId, attach: number, index: number): void {
    const latest = this.#latest.get(session);
    if (latest === undefined || latest.attach <= attach || latest.index > index) return;
    const message = `${this.#alias}: session ${session} was kept alive under attach ${attach} at entry ${index}; since entry ${latest.index} it is attached under ${latest.attach}`;
    this.#findings.add('rule S3', message);
  }

  /** By the end of one TTL whoever had the session before believes in nothing of it any more (promise 5). */
  look(state: State, believers: readonly Believer[]): void {
    for (const id of this.#copied) {
      const session = state.sessions.get(id);
      const latest = this.#latest.get(id);
      if (session === undefined || latest === undefined) continue;
      if (this.#world.nowUs <= latest.atUs + session.ttlMs * LATE_SHARE * US_PER_MS) continue;
      const older = believers.filter(
        (one) => (one.attachOf(this.#alias, id) ?? latest.attach) < latest.attach,
      );
      for (const { token, lock } of session.holds.values())
        for (const one of older) this.#checkBelief(one, `${this.#alias}/${lock.name}`, token, latest);
    }
  }

  #checkBelief(one: Believer, fullName: string, token: Token, { atUs }: Attached): void {
    if (!one.believes(fullName, token)) return;
    const message = `${one.name} believes in token ${token} of ${fullName}, whose session another has attached since ${atUs / US_PER_MS}`;
    this.#findings.add('rule S3', message);
  }
}
