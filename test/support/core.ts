/**
 * Builders for tests of the state machine: valid commands, so that a test states only what differs, and a small group
 * that keeps index, time and attach numbers. After every entry the invariants of the state are checked, and that the naive model
 * does the same, in every test.
 */
import type { NamespaceConfig } from '../../src/api/config.ts';
import type {
  Acquire,
  Attach,
  Cancel,
  Command,
  CommandResult,
  Configure,
  LockEvent,
  OpenSession,
  Release,
  SessionId,
  TakeOver,
  Token,
} from '../../src/api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, COMMANDS_PER_ENTRY_MAX, FORMAT_VERSION } from '../../src/api/limits.ts';
import { bucketOf } from '../../src/api/names.ts';
import { holdsOf } from '../../src/core/crowd.ts';
import {
  type Applied,
  apply,
  CoreFault,
  createState,
  type Draft,
  type FaultProbe,
} from '../../src/core/index.ts';
import { writeSnapshot } from '../../src/core/snapshot.ts';
import type { Lock, Session, State } from '../../src/core/state.ts';
import { NaiveModel } from '../../src/history/naive-model.ts';
import { compareWithModel } from '../../src/history/replay.ts';
import { checkInvariants } from './core-invariants.ts';

export const LINEAGE = 'test-lineage';
export const SECRET_HASH = 'a5'.repeat(32);
export const TTL_MS = 15_000;
export const ACCOUNT = 'payments/payout-worker';

export function namespaceConfig(differs: Partial<NamespaceConfig> = {}): NamespaceConfig {
  return {
    namespace: 'payments',
    name: 'payouts',
    safetyClass: 'Efficiency',
    ttlMs: TTL_MS,
    ttlMsMin: 5_000,
    ttlMsMax: 60_000,
    lockDelayMs: 0,
    maxHoldMs: 24 * 3_600_000,
    modes: ['exclusive'],
    maxWaitersPerName: 10_000,
    maxWaitMs: 24 * 3_600_000,
    sessions: 20_000,
    heldLocks: 1_000_000,
    waiters: 1_000_000,
    operationsPerSecond: 5_000,
    locksPerClient: 100_000,
    operationsPerSecondPerClient: 200,
    semaphores: [],
    consumers: null,
    ...differs,
  };
}

export function openCommand(differs: Partial<OpenSession> = {}): OpenSession {
  return {
    type: 'openSession',
    client: 'test-client',
    identity: { account: ACCOUNT, podUid: '' },
    ttlMs: TTL_MS,
    maxHoldMs: 0,
    secretHash: SECRET_HASH,
    ...differs,
  };
}

export function acquireCommand(differs: Partial<Acquire> & Pick<Acquire, 'session' | 'key'>): Acquire {
  const name = differs.name ?? 'a';
  return {
    type: 'acquire',
    attach: 1,
    name,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    owner: '',
    purpose: '',
    waitMs: 0,
    bucket: bucketOf(name),
    mapVersion: 1,
    acks: [],
    ...differs,
  };
}

export function takeOverCommand(differs: Partial<TakeOver> = {}): TakeOver {
  return { type: 'takeOver', epoch: 1, unixSeconds: 0, tokenFloor: 0, reason: 'test', ...differs };
}

/** What is left of a state when the place in the log is taken away: equal traces = nothing changed. */
export function traceOf(state: State): readonly string[] {
  const [header = '', ...lines] = writeSnapshot(state);
  const { epoch: _epoch, index: _index, at: _at, ...fields } = JSON.parse(header) as Record<string, unknown>;
  return [JSON.stringify(fields), ...lines];
}

/** Makes sure that nobody writes to what was handed in (rule C1). */
export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}

interface GroupOptions {
  /** What differs from `namespaceConfig()`; null = no configuration at all. */
  readonly config?: Partial<NamespaceConfig> | null;
  readonly takeOver?: Partial<TakeOver>;
  /** The highest that this program supports, unless another is given (rule C15). */
  readonly behaviour?: number;
  /** False for tests with very many commands: neither invariants nor naive model are looked at, and no entry is kept. */
  readonly checked?: boolean;
}

/** A lock group reduced to its state machine. Its first entry takes over and configures. */
export class TestGroup {
  readonly state = createState(LINEAGE);
  /** Every entry applied, for replays. */
  readonly entries: Draft[] = [];
  readonly #isChecked: boolean;
  /** Applies the same entries, so that every test of the state machine is one of the naive model too. */
  readonly #model = new NaiveModel(LINEAGE);
  #keys = 0;

  constructor({ config = {}, takeOver = {}, behaviour, checked = true }: GroupOptions = {}) {
    this.#isChecked = checked;
    const level = behaviour ?? BEHAVIOUR_LEVEL_MAX;
    const raise: Command[] = level === 1 ? [] : [{ type: 'raiseBehaviour', level }];
    this.run([takeOverCommand(takeOver), ...raise]);
    if (config !== null) this.configure(config);
  }

  /** The entry that would come next. */
  draft(commands: readonly Command[], afterMs = 0): Draft {
    const { epoch, index, at } = this.state;
    const [first] = commands;
    return {
      format: FORMAT_VERSION,
      behaviour: this.state.behaviour,
      lineage: LINEAGE,
      epoch: first?.type === 'takeOver' ? first.epoch : epoch,
      index: index + 1,
      at: at + afterMs,
      commands,
    };
  }

  /** Applies one entry, `afterMs` of group time after the last. */
  run(commands: readonly Command[], afterMs = 0, probe?: FaultProbe): Applied {
    const draft = this.draft(commands, afterMs);
    if (this.#isChecked) deepFreeze(draft);
    const applied = apply(this.state, draft, probe);
    if (this.#isChecked) {
      this.entries.push(draft);
      checkInvariants(this.state);
      const difference = compareWithModel(this.#model, draft, applied.events, applied.results);
      if (difference !== null) throw new Error(difference.message);
    }
    return applied;
  }

  /** Applies one command in an entry of its own. */
  one(command: Command): CommandResult {
    return this.run([command]).results[0] as CommandResult;
  }

  /** Lets group time pass, in one entry without commands. */
  pass(ms: number): LockEvent[] {
    return this.run([], ms).events;
  }

  configure(differs: Partial<NamespaceConfig> | null): CommandResult {
    return this.one(this.configureCommand(differs));
  }

  configureCommand(differs: Partial<NamespaceConfig> | null): Configure {
    const config = differs === null ? null : namespaceConfig(differs);
    return { type: 'configure', version: this.state.configVersion + 1, config };
  }

  open(differs: Partial<OpenSession> = {}): SessionId {
    const result = this.one(openCommand(differs));
    if (result.type !== 'opened') throw new Error(`not opened: ${JSON.stringify(result)}`);
    return result.session;
  }

  /** A session that holds `count` locks of its own. */
  openWithLocks(count: number, differs: Partial<OpenSession> = {}): SessionId {
    const session = this.open(differs);
    let acks: readonly string[] = [];
    const commands = Array.from({ length: count }, (_, i) => {
      // Each settles the one before, since 256 outcomes may be left unsettled.
      const command = this.acquireCommand(session, `lock-${i}-of-${session}`, { acks });
      acks = [command.key];
      return command;
    });
    for (let i = 0; i < count; i += COMMANDS_PER_ENTRY_MAX)
      this.run(commands.slice(i, i + COMMANDS_PER_ENTRY_MAX));
    if (this.session(session).holds.size !== count) throw new Error('not all locks were granted');
    return session;
  }

  /** The commands of a session, with its attach number of now; a new key unless one is given. */
  acquireCommand(session: SessionId, name: string, differs: Partial<Acquire> = {}): Acquire {
    const key = differs.key ?? `key-${++this.#keys}`;
    return acquireCommand({ session, name, attach: this.#attachOf(session), ...differs, key });
  }

  releaseCommand(session: SessionId, name: string, token: Token, differs: Partial<Release> = {}): Release {
    const attach = this.#attachOf(session);
    return { type: 'release', session, attach, name, token, key: '', acks: [], ...differs };
  }

  cancelCommand(session: SessionId, key: string, differs: Partial<Cancel> = {}): Cancel {
    return { type: 'cancel', session, attach: this.#attachOf(session), key, acks: [], ...differs };
  }

  acquire(session: SessionId, name: string, differs: Partial<Acquire> = {}): CommandResult {
    return this.one(this.acquireCommand(session, name, differs));
  }

  /** Acquires a lock that is expected to be free. */
  lock(session: SessionId, name: string, differs: Partial<Acquire> = {}): Token {
    const result = this.acquire(session, name, differs);
    if (result.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(result)}`);
    return result.token;
  }

  /** Acquires a lock that is expected to be held, and waits for it. */
  wait(session: SessionId, name: string, differs: Partial<Acquire> = {}): CommandResult {
    const result = this.acquire(session, name, { waitMs: 600_000, ...differs });
    if (result.type !== 'queued') throw new Error(`not queued: ${JSON.stringify(result)}`);
    return result;
  }

  release(
    session: SessionId,
    name: string,
    token: Token,
    differs: Partial<Release> = {},
  ): CommandResult & { readonly events: readonly LockEvent[] } {
    const { results, events } = this.run([this.releaseCommand(session, name, token, differs)]);
    return { ...(results[0] as CommandResult), events };
  }

  cancel(session: SessionId, key: string, differs: Partial<Cancel> = {}): Applied {
    return this.run([this.cancelCommand(session, key, differs)]);
  }

  attach(session: SessionId, attach: number, differs: Partial<Attach> = {}): CommandResult {
    return this.one({ type: 'attach', session, attach, secretHash: SECRET_HASH, ...differs });
  }

  close(session: SessionId, clean = true): Applied {
    return this.run([{ type: 'closeSession', session, attach: this.#attachOf(session), clean }]);
  }

  expire(...sessions: SessionId[]): Applied {
    return this.run([{ type: 'expireSessions', sessions, cause: 'expired' }]);
  }

  breakLock(name: string, token: Token, now = false): Applied {
    return this.run([{ type: 'break', name, token, now, reason: 'test', by: 'somebody' }]);
  }

  quarantine(name: string): Applied {
    return this.run([{ type: 'quarantine', name, reason: 'test' }]);
  }

  unquarantine(name: string): Applied {
    return this.run([{ type: 'unquarantine', name, by: 'somebody' }]);
  }

  session(id: SessionId): Session {
    const session = this.state.sessions.get(id);
    if (session === undefined) throw new Error(`no session ${id}`);
    return session;
  }

  lockState(name: string): Lock | undefined {
    return this.state.locks.get(name);
  }

  /** Tokens of all holders, rising. */
  holders(name: string): Token[] {
    const lock = this.lockState(name);
    return lock === undefined ? [] : [...holdsOf(lock)].map(({ token }) => token);
  }

  /** Session and token of the holder, of several the oldest; null when the name is not held. */
  holder(name: string): { readonly session: SessionId; readonly token: Token } | null {
    const hold = this.lockState(name)?.hold ?? null;
    return hold === null ? null : { session: hold.record.session.id, token: hold.token };
  }

  #attachOf(session: SessionId): number {
    return this.state.sessions.get(session)?.attach ?? 1;
  }
}

/** Only the events of some types, in their order. */
export function eventsOf<Type extends LockEvent['type']>(
  events: readonly LockEvent[],
  ...types: Type[]
): Extract<LockEvent, { type: Type }>[] {
  return events.filter((event) => (types as string[]).includes(event.type)) as never;
}

/** What the state machine throws; anything else that is thrown, or nothing, fails the test. */
export function faultOf(action: () => unknown): CoreFault {
  try {
    action();
  } catch (error) {
    if (error instanceof CoreFault) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
