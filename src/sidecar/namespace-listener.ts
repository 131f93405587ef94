/**
 * What happens in one namespace of an application's session, told to its event stream, to the state store (rule A4) and to
 * the metrics.
 */
import type { SidecarMetrics } from '../platform/metrics.ts';
import type { Runtime } from '../platform/runtime.ts';
import { type EndedTokens, endedGrant } from './ended-tokens.ts';
import type { Envelope } from './envelope.ts';
import type { Grant, Hold } from './grants.ts';
import type { NamespaceListener, NamespaceSession } from './namespace-session.ts';
import type { StateStore } from './state-store.ts';

export interface ListenerContext {
  readonly runtime: Runtime;
  readonly envelope: Envelope;
  readonly alias: string;
  readonly secret: string;
  readonly ttlMs: number;
  readonly store: StateStore;
  readonly metrics: SidecarMetrics;
  readonly ended: EndedTokens;
  /** Another one may be in its place. */
  readonly isOver: () => boolean;
  /** The group did not open a session; the application's own goes on. */
  readonly onRefused: () => void;
  /** The namespace's session is over. */
  readonly onOver: (reason: string) => void;
}

export function listenTo(context: ListenerContext, session: () => NamespaceSession): NamespaceListener {
  return {
    ...kept(context),
    ...told(context, session),
    openRefused: context.onRefused,
    over: context.onOver,
  };
}

/** What must be on disk before anything is answered (rule A4). */
function kept({ envelope, alias, secret, ttlMs, store, ended, isOver }: ListenerContext) {
  const { id, isSingle: wasWholeSession } = envelope.options;
  const record = ({ body, token }: Grant, { key, request }: Hold) => {
    return { envelope: id, alias, ...body, token, key, request: request ?? null };
  };
  return {
    identified: (session, attach) => {
      if (!envelope.isOver && !isOver())
        store.put({ type: 'session', envelope: id, alias, session, attach, secret, ttlMs });
    },
    granted: (grant, hold) => store.put({ type: 'grant', ...record(grant, hold) }),
    dropped: (grant, hold, how) => {
      const { request, ...rest } = record(grant, hold);
      if (how === 'released' || how === 'lost') {
        // First the memory of it, then the grant itself: a restart in between must not forget the request.
        if (request !== null) store.put({ type: 'settled', how, ...rest, request });
        const over = endedGrant({ ...rest, request, how }, wasWholeSession);
        if (how === 'lost') {
          const { name, token, key } = over;
          store.put({ type: 'lost', envelope: id, alias, name, token, key });
        }
        ended.add(over);
      }
      store.remove({ type: 'grant', envelope: id, alias, key: hold.key });
    },
    forgotten: (request) => store.remove({ type: 'settled', envelope: id, alias, request }),
  } satisfies Partial<NamespaceListener>;
}

/** What the application's stream and the metrics hear. */
function told(
  { runtime, envelope, alias, metrics, ended }: ListenerContext,
  session: () => NamespaceSession,
) {
  const inMs = (deadlineMs: number): number => {
    const leftMs = Math.min(deadlineMs, envelope.silentUntilMs(session())) - runtime.clock.monotonicMs();
    return Math.max(0, Math.floor(leftMs));
  };
  const of = ({ body: { name }, token }: Grant) => ({ name: `${alias}/${name}`, token });
  const from = (request: string | undefined) => (request === undefined ? {} : { request });
  const until = (grant: Grant) => ({ deadlineInMs: inMs(session().deadlineOf(grant)) });
  return {
    queued: (name, position, request) =>
      envelope.tell({ event: 'queued', name: `${alias}/${name}`, position, ...from(request) }),
    taken: (grant, hold) =>
      envelope.tell({ event: 'granted', ...of(grant), ...until(grant), ...from(hold.request) }),
    revoking: (grant, cause) => envelope.tell({ event: 'revoking', ...of(grant), cause, ...until(grant) }),
    lost: (grant, reason) => {
      metrics.lost();
      if (envelope.hasStream && ended.countOnce(grant.token)) metrics.leaseExpiredWhileWorking();
      envelope.tell({ event: 'lost', ...of(grant), reason });
    },
    jeopardy: () => {
      metrics.jeopardy();
      envelope.tell({ event: 'jeopardy', deadlineInMs: inMs(session().deadlineMs) });
    },
    restored: () => envelope.tell({ event: 'restored', deadlineInMs: inMs(session().deadlineMs) }),
  } satisfies Partial<NamespaceListener>;
}
