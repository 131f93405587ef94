/**
 * Random histories from the naive model, with truthful client records, for tests of the checker.
 * The clients are well-behaved in one respect: a key that was acknowledged or cancelled is not used again (rule C5).
 * The leader is, too: it expires a session only after a full TTL (rules S5, S6).
 */
import fc from 'fast-check';
import type { NamespaceConfig, SemaphorePattern } from '../api/config.ts';
import type { Acquire, Command, LockEvent } from '../api/entry.ts';
import type { HistoryChecker } from './checker.ts';
import {
  acquire,
  breakGrant,
  cancel,
  close,
  configure,
  ModelGroup,
  namespaceConfig,
  openSession,
  release,
  SECRET_HASH,
} from './model.fixture.ts';
import type { ClientRecord } from './records.ts';

/** Those under `pool/` are semaphores in most configurations. */
const NAMES = ['a', 'b', 'pool/1', 'pool/2'];
/** How an acquire asks; the name decides about semaphores, so that few are refused for it. */
const WAYS: readonly Partial<Acquire>[] = [
  {},
  {},
  { mode: 'shared' },
  { mode: 'shared' },
  { reentrant: true },
  { reentrant: true },
  { reentrant: true },
  { mode: 'shared', reentrant: true },
  { permits: 2 },
];
const KEYS = 6;
const TTLS_MS = [5_000, 15_000];

/** One step of a script: numbers are places in what exists when it runs, modulo their count. */
export interface Step {
  readonly laterMs: number;
  readonly does: (typeof DOES)[number];
  readonly who: number;
  readonly key: number;
  readonly name: number;
  readonly waitMs: number;
  readonly way: number;
  readonly config: number;
  readonly ack: boolean;
}

/** Acquires and releases come several times, so that locks are held and waited for. */
const DOES = [
  ...(['acquire', 'acquire', 'acquire', 'acquire', 'acquire', 'acquire', 'acquire', 'acquire'] as const),
  ...(['acquire', 'acquire', 'acquire', 'acquire', 'release', 'release', 'release', 'cancel'] as const),
  'cancel',
  'open',
  'open',
  'attach',
  'close',
  'stream',
  'expire',
  'break',
  'breakNow',
  'configure',
  'takeOver',
  'quarantine',
  'unquarantine',
  'unquarantine',
  'reportStale',
] as const;

const pools = (permits: number, first: readonly SemaphorePattern[] = []): Partial<NamespaceConfig> => ({
  semaphores: [...first, { pattern: 'pool/*', permits }],
});
const FIRST: NamespaceConfig = namespaceConfig({ lockDelayMs: 1_000, ...pools(3) });

const CONFIGS: readonly (NamespaceConfig | null)[] = [
  namespaceConfig(pools(2)),
  namespaceConfig({ lockDelayMs: 500, ...pools(1, [{ pattern: 'pool/2', permits: 4 }]) }),
  FIRST,
  namespaceConfig(),
  namespaceConfig({ lockDelayMs: 2_000, ...pools(5) }),
  namespaceConfig({ lockDelayMs: 2_000, maxHoldMs: 3_000 }),
  namespaceConfig({ heldLocks: 2, maxWaitersPerName: 1, sessions: 3 }),
  namespaceConfig({ waiters: 2, locksPerClient: 2, maxWaitMs: 5_000 }),
  namespaceConfig({ consumers: [{ namespace: 'payments', serviceAccounts: null }] }),
  namespaceConfig({ modes: [] }),
  null,
];

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    laterMs: fc.constantFrom(0, 0, 1, 250, 1_000, 4_000, 15_000),
    does: fc.constantFrom(...DOES),
    who: fc.nat(50),
    key: fc.nat(KEYS - 1),
    name: fc.nat(NAMES.length - 1),
    waitMs: fc.constantFrom(0, 250, 5_000, 60_000),
    way: fc.nat(WAYS.length - 1),
    config: fc.nat(CONFIGS.length - 1),
    ack: fc.boolean(),
  }),
  { minLength: 30, maxLength: 150, size: 'max' },
);

export class RandomHistory {
  readonly group = new ModelGroup();
  readonly configs = new Map<number, NamespaceConfig | null>([[1, FIRST]]);
  readonly records: ClientRecord[] = [];
  readonly #openedAt = new Map<number, { readonly at: number; readonly ttlMs: number }>();
  readonly #attaches = new Map<number, number>();
  readonly #usedUp = new Set<string>();
  readonly #usedOnce = new Set<string>();
  #tookOverAt = 0;

  constructor(script: readonly Step[]) {
    this.group.takeOver(1);
    this.#apply(0, { type: 'raiseBehaviour', level: 2 }, configure(1, FIRST));
    for (const step of script) this.#step(step);
    this.#rest();
  }

  /** Gives everything to the checker: entries in order, the records before, after, or beside them. */
  feed(checker: HistoryChecker, order: 'before' | 'after' | 'beside'): void {
    const records = order === 'after' ? [] : [...this.records];
    if (order === 'before') for (const record of records.splice(0)) checker.client(record);
    for (const entry of this.group.history) {
      checker.entry(entry);
      while (records[0] !== undefined && timeOf(records[0]) <= entry.at) {
        const record = records.shift();
        if (record !== undefined) checker.client(record);
      }
    }
    for (const record of order === 'after' ? this.records : records) checker.client(record);
  }

  #step(step: Step): void {
    const { group } = this;
    if (step.does === 'takeOver') {
      group.at += step.laterMs;
      this.#tookOverAt = group.at;
      this.#record(group.takeOver(step.who * 1_000).events);
      return;
    }
    const command = this.#command(step);
    this.#apply(step.laterMs, ...(command === null ? [] : [command]));
    if (command?.type === 'configure') this.configs.set(command.version, command.config);
  }

  #command(step: Step): Command | null {
    const { sessions, held } = this.group.model.view();
    const name = NAMES[step.name] ?? 'a';
    const session = sessions[step.who % Math.max(1, sessions.length)];
    if (session === undefined) return this.#open(step);
    const hold = held[step.who % Math.max(1, held.length)];
    const by = { attach: this.#attaches.get(session.id) ?? 1, acks: this.#acks(session, step) };
    const key = `key ${step.key}`;
    switch (step.does) {
      case 'acquire':
        if (this.#usedUp.has(`${session.id} ${key}`) || by.acks.includes(key)) return null;
        this.#usedOnce.add(`${session.id} ${key}`);
        return acquire(session.id, key, name, { ...by, waitMs: step.waitMs, ...wayOf(step, name) });
      case 'release':
        return release(hold?.session ?? session.id, hold?.name ?? name, hold?.token ?? 1, {
          attach: this.#attaches.get(hold?.session ?? session.id) ?? 1,
          key: hold?.keys[step.key % hold.keys.length] ?? key,
        });
      case 'cancel':
        this.#usedUp.add(`${session.id} ${key}`);
        return cancel(session.id, key, by);
      case 'attach':
        this.#attaches.set(session.id, by.attach + 1);
        return { type: 'attach', session: session.id, attach: by.attach + 1, secretHash: SECRET_HASH };
      case 'close':
      case 'stream':
        return close(session.id, step.does === 'close', by.attach);
      case 'expire':
        return this.#expire(session.id, step.laterMs);
      case 'break':
      case 'breakNow':
        return breakGrant(hold?.name ?? name, hold?.token ?? 1, step.does === 'breakNow');
      case 'configure':
        return configure(this.group.model.view().version + 1, CONFIGS[step.config] ?? null);
      case 'quarantine':
        return { type: 'quarantine', name, reason: 'test' };
      case 'unquarantine':
        return { type: 'unquarantine', name, by: 'operator' };
      case 'reportStale':
        return { type: 'reportStale', session: session.id, name, token: 1, resource: 'db' };
      case 'open':
        return this.#open(step);
      case 'takeOver':
        return null;
    }
  }

  #open(step: Step): Command {
    const account = step.ack ? 'payments/payout-worker' : 'billing/batch';
    return openSession({
      identity: { account, podUid: 'pod' },
      ttlMs: TTLS_MS[step.key % TTLS_MS.length] ?? 15_000,
      maxHoldMs: step.name === 0 ? 3_000 : 0,
    });
  }

  /** Acknowledges a key that is held or over; from then on it is used up. */
  #acks(
    session: { readonly id: number; readonly keys: readonly { readonly key: string; readonly is: string }[] },
    step: Step,
  ) {
    const settled = session.keys.find((key) => key.is !== 'waiting');
    if (!step.ack || settled === undefined) return [];
    this.#usedUp.add(`${session.id} ${settled.key}`);
    return [settled.key];
  }

  #expire(session: number, laterMs: number): Command {
    const opened = this.#openedAt.get(session);
    const since = Math.max(opened?.at ?? 0, this.#tookOverAt);
    const passed = this.group.at + laterMs >= since + (opened?.ttlMs ?? 0);
    return { type: 'expireSessions', sessions: [session], cause: passed ? 'expired' : 'threw' };
  }

  #apply(laterMs: number, ...commands: Command[]): void {
    const { events, results } = this.group.apply(laterMs, ...commands);
    this.#record(events);
    const { at } = this.group;
    for (const [place, command] of commands.entries()) {
      if (results[place]?.type !== 'done') continue;
      const { lineage } = this.group.history[0] ?? { lineage: '' };
      if (command.type === 'release') {
        const { session, name, token, key } = command;
        this.records.push({ type: 'releaseConfirmed', lineage, session, name, token, key, at });
      }
      if (command.type === 'cancel' && this.#usedOnce.has(`${command.session} ${command.key}`)) {
        this.records.push({
          type: 'cancelConfirmed',
          lineage,
          session: command.session,
          key: command.key,
          at,
        });
      }
    }
  }

  /** What truthful clients say: told of each grant at once, believing it until its end, told of each loss at once. */
  #record(events: readonly LockEvent[]): void {
    const { at, history } = this.group;
    const { lineage } = history[0] ?? { lineage: '' };
    for (const event of events) {
      if (event.type === 'sessionOpened') {
        this.#openedAt.set(event.session, { at, ttlMs: event.ttlMs });
        const { session, ttlMs } = event;
        this.records.push({ type: 'keepaliveAcknowledged', lineage, session, sentAt: at, ttlMs });
      } else if (event.type === 'granted') {
        const { session, key, name, token } = event;
        this.records.push({ type: 'grantReported', lineage, session, key, name, token, at });
      } else if ('token' in event && 'name' in event && event.token > 0) this.#recordEnd(event, lineage);
    }
  }

  #recordEnd(event: Extract<LockEvent, { token: number; name: string }>, lineage: string): void {
    const { at } = this.group;
    const { session, name, token, type } = event;
    if (type !== 'released' && type !== 'expired' && type !== 'revoked' && type !== 'cancelled') return;
    if ('remaining' in event && event.remaining > 0) return;
    const reported = this.records.find((record) => record.type === 'grantReported' && record.token === token);
    const from = reported?.type === 'grantReported' ? reported.at : at;
    this.records.push({ type: 'heldInterval', lineage, session, name, token, from, to: at });
    if (type === 'expired' || type === 'revoked') {
      this.records.push({ type: 'lost', lineage, session, name, token, at });
    }
  }

  /** Brings every name back into service, closes all sessions and lets every timer run out. */
  #rest(): void {
    for (const name of this.group.model.view().quarantined) {
      this.#apply(0, { type: 'unquarantine', name, by: 'operator' });
    }
    for (const session of this.group.model.view().sessions) {
      this.#apply(0, close(session.id, true, this.#attaches.get(session.id) ?? 1));
    }
    for (let i = 0; i < 3; i++) this.#apply(60_000);
  }
}

function wayOf({ way }: Step, name: string): Partial<Acquire> {
  const wanted = WAYS[way] ?? {};
  if (name.startsWith('pool/')) return { ...wanted, mode: 'semaphore' };
  return { ...wanted, permits: 1 };
}

function timeOf(record: ClientRecord): number {
  if (record.type === 'keepaliveAcknowledged') return record.sentAt;
  return record.type === 'heldInterval' ? record.to : record.at;
}
