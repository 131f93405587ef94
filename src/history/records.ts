/**
 * What clients and the run itself put on record beside the group's committed entries: the checker's other input.
 * All times are milliseconds of one run-wide time base (virtual time in a simulation). A record may be given to the
 * checker at any time, also before the entry it speaks of; the records of one session are given in their order.
 */
import type { SessionId, Token } from '../api/entry.ts';

interface OfSession {
  /** Session ids start again in a new lineage, so every record names its lineage. */
  readonly lineage: string;
  readonly session: SessionId;
}

interface OfGrant extends OfSession {
  readonly name: string;
  readonly token: Token;
}

export type ClientRecord =
  /** A keepalive or attach was acknowledged: until `sentAt + ttlMs` the session may not expire (promise 4, rule S1). */
  | (OfSession & { readonly type: 'keepaliveAcknowledged'; readonly sentAt: number; readonly ttlMs: number })
  /** The service told the client that its acquire was granted: this may never be lost. */
  | (OfGrant & { readonly type: 'grantReported'; readonly key: string; readonly at: number })
  /** The client answered "held" from `from` to `to` (rule A1). Several for one token are fine. */
  | (OfGrant & { readonly type: 'heldInterval'; readonly from: number; readonly to: number })
  /** The client sent the last release, a cancel or a close: from now on nobody has to tell it that the grant was lost. */
  | (OfGrant & { readonly type: 'gaveUp'; readonly at: number })
  /** The application was told that the grant is lost. Final for the token (rule S2). */
  | (OfGrant & { readonly type: 'lost'; readonly at: number })
  /** `key`: of the acquire that was released; without it a grant that several acquires share is not judged (rule C6). */
  | (OfGrant & { readonly type: 'releaseConfirmed'; readonly key?: string; readonly at: number })
  | (OfSession & { readonly type: 'cancelConfirmed'; readonly key: string; readonly at: number })
  /** The client died or was frozen: it sends nothing and can be told nothing. */
  | (OfSession & { readonly type: 'clientStopped'; readonly at: number })
  | (OfSession & { readonly type: 'clientResumed'; readonly at: number });

export type RunRecord =
  /**
   * From `from` to `to` the service was hindered (a stall, a restart, no majority): bounds that run meanwhile are longer by that
   * time, and by `extraMs` once. Given to the checker before the entries that come after it.
   */
  | {
      readonly type: 'pause';
      readonly from: number;
      readonly to: number;
      readonly extraMs: number;
      readonly reason: string;
    }
  /** The next entry starts this lineage: all sessions and holds of the one before are over (rule S10). */
  | { readonly type: 'newLineage'; readonly lineage: string }
  /** `server` won the leadership numbered `epoch`. */
  | { readonly type: 'epochLed'; readonly lineage: string; readonly epoch: number; readonly server: string };
