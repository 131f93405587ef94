/**
 * Where each session's notices go: the client stream that attached it last. Kept both ways, so that a stream which closes costs what its own
 * sessions cost, however many there are of others.
 */
import type { SessionId } from '../../api/entry.ts';
import { assert } from '../../core/index.ts';
import type { Outgoing } from './outbox.ts';

export interface Route {
  readonly to: Outgoing;
  readonly attach: number;
}

export class Routes {
  readonly #bySession = new Map<SessionId, Route>();
  readonly #sessionsOf = new Map<Outgoing, Set<SessionId>>();

  get size(): number {
    return this.#bySession.size;
  }

  get(session: SessionId): Route | undefined {
    return this.#bySession.get(session);
  }

  /** Nobody hears what is sent over a stream that has closed meanwhile: such a session has no route until it is attached again. */
  set(session: SessionId, to: Outgoing, attach: number): void {
    this.delete(session);
    if (to.isClosed) return;
    this.#bySession.set(session, { to, attach });
    const sessions = this.#sessionsOf.get(to);
    if (sessions === undefined) this.#sessionsOf.set(to, new Set([session]));
    else sessions.add(session);
  }

  delete(session: SessionId): void {
    const route = this.#bySession.get(session);
    if (route === undefined) return;
    this.#bySession.delete(session);
    const sessions = this.#sessionsOf.get(route.to);
    const wasListed = sessions?.delete(session);
    assert(wasListed === true, 'a route is known by its stream as well');
    if (sessions?.size === 0) this.#sessionsOf.delete(route.to);
  }

  /** A client stream is gone, and the routes over it. */
  close(to: Outgoing): void {
    assert(to.isClosed, 'only a closed stream loses its routes');
    for (const session of this.#sessionsOf.get(to) ?? []) this.#bySession.delete(session);
    this.#sessionsOf.delete(to);
  }
}
