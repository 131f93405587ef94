/**
 * What happens in one namespace of an application's session, told to its event stream, to the state store (rule A4) and to
 * the metrics.
 */
import type { SidecarMetrics } from '../platform/metrics.ts';
import type { Runtime } from '../platform/runtime.ts';
import type { Envelope } from './envelope.ts';
import type { Grant, NamespaceListener, NamespaceSession } from './namespace-session.ts';
import type { SidecarRecord, StateStore } from './state-store.ts';

export interface ListenerContext {
  readonly runtime: Runtime;
  readonly envelope: Envelope;
  readonly alias: string;
  readonly secret: string;
  readonly ttlMs: number;
  readonly store: StateStore;
  readonly metrics: SidecarMetrics;
  /** The group did not open a session; the application's own goes on. */
  readonly onRefused: () => void;
  /** The namespace's session is over. */
  readonly onOver: (reason: string) => void;
}

export function listenTo(context: ListenerContext, session: () => NamespaceSession): NamespaceListener {
  const { runtime, envelope, alias, secret, ttlMs, store, metrics } = context;
  const full = (name: string): string => `${alias}/${name}`;
  const inMs = (deadlineMs: number): number =>
    Math.max(0, Math.floor(deadlineMs - runtime.clock.monotonicMs()));
  const record = (grant: Grant): SidecarRecord => {
    const { name, token, key, owner, request = null } = grant;
    return { type: 'grant', envelope: envelope.options.id, alias, name, token, key, owner, request };
  };
  return {
    identified: (id, attach) => {
      if (envelope.isOver) return;
      store.put({
        type: 'session',
        envelope: envelope.options.id,
        alias,
        session: id,
        attach,
        secret,
        ttlMs,
      });
    },
    queued: (name, position, request) =>
      envelope.tell({
        event: 'queued',
        name: full(name),
        position,
        ...(request === undefined ? {} : { request }),
      }),
    granted: (grant) => {
      store.put(record(grant));
      const { name, token, request } = grant;
      const deadlineInMs = inMs(session().deadlineOf(grant));
      envelope.tell({
        event: 'granted',
        name: full(name),
        token,
        deadlineInMs,
        ...(request === undefined ? {} : { request }),
      });
    },
    ended: (grant) => store.remove(record(grant)),
    revoking: (grant, cause) =>
      envelope.tell({
        event: 'revoking',
        name: full(grant.name),
        token: grant.token,
        cause,
        deadlineInMs: inMs(session().deadlineOf(grant)),
      }),
    lost: ({ name, token }, reason) => {
      metrics.lost();
      if (envelope.hasStream && session().ended.countOnce(token)) metrics.leaseExpiredWhileWorking();
      envelope.tell({ event: 'lost', name: full(name), token, reason });
    },
    jeopardy: () => {
      metrics.jeopardy();
      envelope.tell({ event: 'jeopardy', deadlineInMs: inMs(session().deadlineMs) });
    },
    restored: () => envelope.tell({ event: 'restored', deadlineInMs: inMs(session().deadlineMs) }),
    openRefused: context.onRefused,
    over: context.onOver,
  };
}
