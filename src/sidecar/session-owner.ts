/**
 * What a group session reports upwards. An interface of its own, since the session knows nothing of what it is kept for.
 */
import type {
  CommandResult,
  GrantView,
  RefusalCode,
  RevokeCause,
  SessionId,
  Token,
  WaitView,
} from '../api/entry.ts';
import type { Rejected } from '../api/wire.ts';
import type { LeaseListener } from './lease-alarm.ts';

/** What a group session tells its owner. Called in the order of the log. */
export interface SessionOwner extends LeaseListener {
  /** Must be on disk when it returns: the number is about to be used (rule A4). */
  identified(session: SessionId, attach: number): void;
  openRefused(refusal: Refusal): void;
  /** All that the group says this session has, after an attach (rule S3). */
  attached(grants: readonly GrantView[], waits: readonly WaitView[]): void;
  granted(key: string, token: Token): void;
  refused(key: string, code: RefusalCode): void;
  revoking(token: Token, cause: RevokeCause): void;
  revoked(token: Token): void;
  /** A keepalive or attach was acknowledged. `afterSuspend`: until then a suspend had taken "held" away (rule A2). */
  acknowledged(afterSuspend: boolean): void;
  /** The group has ended the session. */
  over(reason: string): void;
  /** Tokens the owner believes held, and whether requests are under way that may change them. */
  belief(): { readonly tokens: Iterable<Token>; readonly isSettled: boolean };
}

export type Refusal = Extract<CommandResult, { type: 'refused' }> | Rejected;
