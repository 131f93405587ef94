/** The lines of a snapshot, after its header: one JSON array each. Format version 1 (rule L6). */
import type { Acquire, Ending, RevokeCause, SessionId, Token } from '../api/entry.ts';
import type { SessionHeader } from './state.ts';

export type HoldFields = readonly [
  token: Token,
  since: number,
  revoking: RevokeCause | null,
  due: number,
  sequence: number,
];

export type KeyState =
  | readonly ['waiting', queuedAt: number, due: number, sequence: number]
  /** The only key there ever was of its hold, which is written here. */
  | readonly ['held', ...HoldFields]
  /** One of the keys of a hold that has a line of its own. */
  | readonly ['joined']
  | readonly ['ended', by: Ending, token: Token];

export type SessionLine = readonly ['session', SessionHeader];
export type KeyLine = readonly [
  'key',
  session: SessionId,
  request: Acquire,
  settled: boolean,
  state: KeyState,
];
/** Behind the lines of its keys; `request` is the acquire it was granted to, `keys` in the order they joined. */
export type HoldLine = readonly ['hold', request: Acquire, keys: readonly string[], ...HoldFields];
export type LockLine = readonly [
  'lock',
  name: string,
  quarantined: boolean,
  delay: readonly [due: number, sequence: number] | null,
  queue: readonly (readonly [session: SessionId, key: string])[],
];
export type BacklogLine =
  | readonly ['backlog', kind: 'end' | 'strip', session: SessionId]
  | readonly ['backlog', kind: 'serve', name: string];
export type EndLine = readonly ['end', sessions: number, locks: number, holds: number, waits: number];
export type SnapshotLine = SessionLine | KeyLine | HoldLine | LockLine | BacklogLine | EndLine;
