/** Builders for tests of the naive model: valid commands and a group that applies them, so that a test states only what differs. */
import type { NamespaceConfig } from '../api/config.ts';
import type {
  Acquire,
  Cancel,
  Command,
  CommandResult,
  HistoryEntry,
  LockEvent,
  OpenSession,
  Release,
} from '../api/entry.ts';
import { BEHAVIOUR_LEVEL_MAX, TRANSITIONS_PER_ENTRY_MAX } from '../api/limits.ts';
import { NaiveModel } from './naive-model.ts';

export const LINEAGE = 'lineage-1';
export const SECRET_HASH = 'ab'.repeat(32);

export function namespaceConfig(overrides: Partial<NamespaceConfig> = {}): NamespaceConfig {
  return {
    namespace: 'payments',
    name: 'payouts',
    safetyClass: 'Efficiency',
    ttlMs: 15_000,
    ttlMsMin: 5_000,
    ttlMsMax: 60_000,
    lockDelayMs: 0,
    maxHoldMs: 86_400_000,
    modes: ['exclusive', 'shared', 'semaphore'],
    maxWaitersPerName: 10_000,
    maxWaitMs: 600_000,
    sessions: 5_000,
    heldLocks: 200_000,
    waiters: 50_000,
    operationsPerSecond: 5_000,
    locksPerClient: 10_000,
    operationsPerSecondPerClient: 200,
    semaphores: [],
    consumers: null,
    ...overrides,
  };
}

export function openSession(overrides: Partial<OpenSession> = {}): OpenSession {
  return {
    type: 'openSession',
    client: 'worker',
    identity: { account: 'payments/payout-worker', podUid: 'pod-1' },
    ttlMs: 15_000,
    maxHoldMs: 0,
    secretHash: SECRET_HASH,
    ...overrides,
  };
}

export function acquire(
  session: number,
  key: string,
  name: string,
  overrides: Partial<Acquire> = {},
): Acquire {
  return {
    type: 'acquire',
    session,
    attach: 1,
    key,
    name,
    mode: 'exclusive',
    permits: 1,
    reentrant: false,
    owner: 'worker',
    purpose: '',
    waitMs: 60_000,
    bucket: 0,
    mapVersion: 1,
    acks: [],
    ...overrides,
  };
}

export function release(
  session: number,
  name: string,
  token: number,
  overrides: Partial<Release> = {},
): Release {
  return { type: 'release', session, attach: 1, name, token, key: '', acks: [], ...overrides };
}

export function cancel(session: number, key: string, overrides: Partial<Cancel> = {}): Cancel {
  return { type: 'cancel', session, attach: 1, key, acks: [], ...overrides };
}

export function breakGrant(name: string, token: number, now = false): Command {
  return { type: 'break', name, token, now, reason: 'stuck', by: 'operator' };
}

export function close(session: number, clean = true, attach = 1): Command {
  return { type: 'closeSession', session, attach, clean };
}

export function expire(...sessions: number[]): Command {
  return { type: 'expireSessions', sessions, cause: 'expired' };
}

export function configure(version: number, config: NamespaceConfig | null): Command {
  return { type: 'configure', version, config };
}

export interface Applied {
  readonly events: readonly LockEvent[];
  readonly results: readonly CommandResult[];
}

/** A naive model with its log: applies commands entry by entry and keeps the history. */
export class ModelGroup {
  readonly model = new NaiveModel(LINEAGE);
  readonly history: HistoryEntry[] = [];
  epoch = 1;
  index = 0;
  at = 0;
  /** That of the state, for the next entry. */
  behaviour = 1;

  /** One entry with these commands, `laterMs` after the last one. */
  apply(laterMs: number, ...commands: Command[]): Applied {
    this.at += laterMs;
    this.index += 1;
    const { epoch, index, at, behaviour } = this;
    const entry = { lineage: LINEAGE, epoch, index, at, behaviour, format: 1, commands };
    const { events, results } = this.model.apply(entry);
    this.behaviour = this.model.behaviour;
    this.history.push({ lineage: LINEAGE, epoch, index, at, wallMs: 0, eventHash: '', events });
    return { events, results };
  }

  now(...commands: Command[]): Applied {
    return this.apply(0, ...commands);
  }

  takeOver(unixSeconds = 0, tokenFloor = 0): Applied {
    if (this.index > 0) this.epoch += 1;
    return this.now({ type: 'takeOver', epoch: this.epoch, unixSeconds, tokenFloor, reason: 'test' });
  }

  /** The only result of one command. */
  result(command: Command): CommandResult {
    const [result] = this.now(command).results;
    if (result === undefined) throw new Error('a command without a result');
    return result;
  }

  /** Refusal code of one command, or the type of its other result. */
  code(command: Command): string {
    const result = this.result(command);
    return result.type === 'refused' ? result.code : result.type;
  }
}

/** A group with a leader, a configuration (version 1) and `sessions` open sessions numbered from 1. The first token is 1. */
export function modelGroup({
  sessions = 2,
  config = {},
  level = BEHAVIOUR_LEVEL_MAX,
}: {
  readonly sessions?: number;
  readonly config?: Partial<NamespaceConfig>;
  readonly level?: number;
} = {}): ModelGroup {
  const group = new ModelGroup();
  group.takeOver();
  const raise: Command[] = level > 1 ? [{ type: 'raiseBehaviour', level }] : [];
  group.now(...raise, configure(1, namespaceConfig(config)));
  for (let i = 0; i < sessions; i++) group.now(openSession());
  return group;
}

/** Events in short: `granted a s1 t5`, for tests that care about their order. */
export function brief(events: readonly LockEvent[]): string[] {
  return events.map((event) =>
    [
      event.type,
      'name' in event ? event.name : '',
      'session' in event ? `s${event.session}` : '',
      'token' in event ? `t${event.token}` : '',
      'code' in event ? event.code : '',
      'cause' in event ? event.cause : '',
    ]
      .filter((part) => part !== '')
      .join(' '),
  );
}

/**
 * Applies the commands in an entry whose budget was used up before them, by waits of a filler that time out: each
 * timer ends its own wait and serves the name, which ends the next one.
 */
export function applyWhileBusy(group: ModelGroup, laterMs: number, ...commands: Command[]): Applied {
  const filler = group.result(openSession());
  if (filler.type !== 'opened') throw new Error('no session for the filler');
  const waits: Command[] = [];
  for (let i = 0; i < 2 * TRANSITIONS_PER_ENTRY_MAX; i++) {
    waits.push(acquire(filler.session, `filler ${i}`, 'filler', { waitMs: 1 }));
  }
  group.now(acquire(filler.session, 'holder', 'filler'), ...waits);
  const { events, results } = group.apply(laterMs, ...commands);
  return { events: events.filter((event) => !('name' in event) || event.name !== 'filler'), results };
}
