/**
 * What the naive model remembers: flat lists, searched from front to back. No index, no heap, no cursor that could
 * hide a mistake, because this model exists to disagree with the core when one of the two is wrong (rule C14).
 */
import type { Mode, NamespaceConfig } from '../../api/config.ts';
import type {
  Acquire,
  Ending,
  Identity,
  LockEvent,
  RevokeCause,
  SessionEndCause,
  SessionId,
  Token,
} from '../../api/entry.ts';

type NaiveKeyState =
  | { readonly is: 'waiting' }
  | { readonly is: 'held'; readonly token: Token }
  | { readonly is: 'ended'; readonly by: Ending; readonly token: Token };

/** One acquire of a session: the body it was made with, and what became of it (rules C4, C5). */
export interface NaiveKey {
  readonly key: string;
  readonly body: Pick<Acquire, 'name' | 'mode' | 'permits' | 'owner' | 'reentrant'>;
  readonly purpose: string;
  state: NaiveKeyState;
  settled: boolean;
}

export interface NaiveSession {
  readonly id: SessionId;
  readonly client: string;
  readonly identity: Identity;
  readonly ttlMs: number;
  /** 0 = the namespace's alone. */
  readonly maxHoldMs: number;
  readonly secretHash: string;
  attach: number;
  /** Null while the session is alive (rule C10). */
  ending: SessionEndCause | null;
  keys: NaiveKey[];
}

export interface NaiveHold {
  readonly name: string;
  readonly session: SessionId;
  readonly mode: Mode;
  readonly permits: number;
  readonly owner: string;
  readonly reentrant: boolean;
  readonly token: Token;
  /** Of the acquire that was granted first. */
  readonly purpose: string;
  readonly since: number;
  /** In the order in which they joined (rule C6). */
  keys: string[];
  readonly maxHoldEnd: number;
  revoking: { readonly cause: RevokeCause; readonly until: number } | null;
}

/** All waits of all names stand in one list in order of queueing; a name's queue is what a filter leaves of it. */
export interface NaiveWait {
  readonly name: string;
  readonly session: SessionId;
  readonly key: string;
  readonly queuedAt: number;
  readonly due: number;
}

export type NaiveTimer = { readonly due: number; readonly sequence: number } & NaiveTimerTask;
export type NaiveTimerTask =
  | { readonly of: 'wait'; readonly session: SessionId; readonly key: string }
  | { readonly of: 'lockDelay'; readonly name: string }
  | { readonly of: 'maxHold'; readonly token: Token }
  | { readonly of: 'revokeEnd'; readonly token: Token };

/** What the backlog is made of: sessions to be ended or stripped, names to be served. */
export type NaiveDuty =
  | { readonly kind: 'end' | 'strip'; readonly session: SessionId }
  | { readonly kind: 'serve'; readonly name: string };

export interface NaiveState {
  readonly lineage: string;
  index: number;
  epoch: number;
  at: number;
  behaviour: number;
  /** The last token given out or raised to. */
  counter: Token;
  lastSession: SessionId;
  version: number;
  config: NamespaceConfig | null;
  sessions: NaiveSession[];
  holds: NaiveHold[];
  waits: NaiveWait[];
  delays: { readonly name: string; readonly until: number }[];
  quarantined: string[];
  timers: NaiveTimer[];
  timersSet: number;
  backlog: NaiveDuty[];
  /** Consequences that this entry may still carry out (rule C1). */
  budget: number;
  /** What this entry has caused so far. */
  events: LockEvent[];
}

export function emptyState(lineage: string): NaiveState {
  return {
    lineage,
    index: 0,
    epoch: 0,
    at: 0,
    behaviour: 1,
    counter: 0,
    lastSession: 0,
    version: 0,
    config: null,
    sessions: [],
    holds: [],
    waits: [],
    delays: [],
    quarantined: [],
    timers: [],
    timersSet: 0,
    backlog: [],
    budget: 0,
    events: [],
  };
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`naive model: ${message}`);
}

export function aliveSession(state: NaiveState, id: SessionId): NaiveSession | undefined {
  return state.sessions.find((session) => session.id === id && session.ending === null);
}

export function keyOf(state: NaiveState, id: SessionId, key: string): NaiveKey {
  const session = state.sessions.find((other) => other.id === id);
  const found = session?.keys.find((other) => other.key === key);
  assert(found !== undefined, `session ${id} has no key ${JSON.stringify(key)}`);
  return found;
}

export function forgetKey(session: NaiveSession, key: string): void {
  session.keys = session.keys.filter((other) => other.key !== key);
}

/** All holds of a name, by rising token. */
export function holdsOf(state: NaiveState, name: string): NaiveHold[] {
  return state.holds.filter((hold) => hold.name === name).sort((a, b) => a.token - b.token);
}

export function holdsOfSession(state: NaiveState, session: SessionId): NaiveHold[] {
  return state.holds.filter((hold) => hold.session === session).sort((a, b) => a.token - b.token);
}

export function queueOf(state: NaiveState, name: string): NaiveWait[] {
  return state.waits.filter((wait) => wait.name === name);
}

export function isDelayed(state: NaiveState, name: string): boolean {
  return state.delays.some((delay) => delay.name === name);
}

export function isQuarantined(state: NaiveState, name: string): boolean {
  return state.quarantined.includes(name);
}

/** Whether an account may open sessions and be granted under `config`. Null consumers: everybody may. */
export function isConsumer(config: NamespaceConfig, identity: Identity): boolean {
  if (config.consumers === null) return true;
  return config.consumers.some((consumer) =>
    consumer.serviceAccounts === null
      ? identity.account.startsWith(`${consumer.namespace}/`)
      : consumer.serviceAccounts.some((account) => identity.account === `${consumer.namespace}/${account}`),
  );
}

/** README "permits of a name": N of the first pattern that matches it, or null. No configuration: null. */
export function permitsOf(config: NamespaceConfig | null, name: string): number | null {
  if (config === null || config.semaphores.length === 0) return null;
  const encoder = new TextEncoder();
  const nameBytes = [...encoder.encode(name)];
  for (const { pattern, permits } of config.semaphores) {
    const isPrefix = pattern.endsWith('*');
    const patternBytes = [...encoder.encode(isPrefix ? pattern.slice(0, -1) : pattern)];
    const begins = patternBytes.every((byte, place) => nameBytes[place] === byte);
    if (begins && (isPrefix || patternBytes.length === nameBytes.length)) return permits;
  }
  return null;
}

/** Adds to the backlog, unless the same already waits there. */
export function addDuty(state: NaiveState, duty: NaiveDuty): void {
  if (!state.backlog.some((other) => dutyName(other) === dutyName(duty))) state.backlog.push(duty);
}

export function dutyName(duty: NaiveDuty): string {
  return duty.kind === 'serve' ? `serve ${duty.name}` : `${duty.kind} ${duty.session}`;
}

export function setTimer(state: NaiveState, due: number, task: NaiveTimerTask): void {
  state.timersSet += 1;
  state.timers.push({ due, sequence: state.timersSet, ...task });
}

export function cancelTimers(state: NaiveState, matches: (timer: NaiveTimer) => boolean): void {
  state.timers = state.timers.filter((timer) => !matches(timer));
}
