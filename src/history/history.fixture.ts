/** Builders of hand-made histories: a test writes only the events that matter, in time and order. */
import type { NamespaceConfig } from '../api/config.ts';
import type { HistoryEntry, LockEvent } from '../api/entry.ts';
import { type CheckerOptions, HistoryChecker } from './checker.ts';
import { LINEAGE, namespaceConfig } from './model.fixture.ts';
import type { FinishOptions } from './property.ts';
import type { ClientRecord, RunRecord } from './records.ts';
import type { Verdict } from './verdict.ts';

type Of<T extends LockEvent['type']> = Extract<LockEvent, { type: T }>;
type Rest<T extends LockEvent['type']> = Partial<Of<T>>;

/** Stands for the key that was granted the token last; `History` puts it in. */
const LATEST_KEY = '?';

export const granted = (
  token: number,
  session: number,
  name = 'a',
  rest: Rest<'granted'> = {},
): LockEvent => ({
  type: 'granted',
  name,
  session,
  key: `key-${token}`,
  token,
  mode: 'exclusive',
  permits: 1,
  owner: 'worker',
  joined: false,
  fromQueue: false,
  waitedMs: 0,
  ...rest,
});

/** A grant from the queue to the key that `queued(key, ...)` made. */
export const grantedFromQueue = (
  token: number,
  session: number,
  key: string,
  waitedMs: number,
  rest: Rest<'granted'> = {},
): LockEvent => granted(token, session, 'a', { key, fromQueue: true, waitedMs, ...rest });

export const queued = (
  key: string,
  session: number,
  position: number,
  rest: Rest<'queued'> = {},
): LockEvent => ({
  type: 'queued',
  name: 'a',
  session,
  key,
  mode: 'exclusive',
  permits: 1,
  position,
  waitUntil: 60_000,
  ...rest,
});

export const refused = (key: string, session: number, rest: Rest<'refused'> = {}): LockEvent => ({
  type: 'refused',
  name: 'a',
  session,
  key,
  code: 'WAIT_TIMEOUT',
  fromQueue: true,
  ...rest,
});

export const released = (
  token: number,
  session: number,
  name = 'a',
  rest: Rest<'released'> = {},
): LockEvent => ({
  type: 'released',
  name,
  session,
  token,
  cause: 'release',
  key: rest.cause === 'close' ? '' : LATEST_KEY,
  remaining: 0,
  ...rest,
});

export const cancelled = (key: string, session: number, token = 0, remaining = 0): LockEvent => ({
  type: 'cancelled',
  name: 'a',
  session,
  key,
  token,
  remaining,
});

export const expired = (
  token: number,
  session: number,
  name = 'a',
  rest: Rest<'expired'> = {},
): LockEvent => ({
  type: 'expired',
  name,
  session,
  token,
  cause: 'expired',
  ...rest,
});

export const revoking = (token: number, session: number, until: number): LockEvent => ({
  type: 'revoking',
  name: 'a',
  session,
  token,
  cause: 'break',
  until,
});

export const revoked = (token: number, session: number, unsafe = false): LockEvent => ({
  type: 'revoked',
  name: 'a',
  session,
  token,
  cause: 'break',
  unsafe,
});

export const broken = (token: number, session: number, now: boolean): LockEvent => ({
  type: 'broken',
  name: 'a',
  session,
  token,
  now,
  reason: 'stuck',
  by: 'operator',
});

export const delayed = (until: number): LockEvent => ({ type: 'delayed', name: 'a', until });

export const opened = (session: number, ttlMs = 15_000): LockEvent => ({
  type: 'sessionOpened',
  session,
  client: 'worker',
  identity: { account: 'payments/payout-worker', podUid: 'pod-1' },
  ttlMs,
});

export const ending = (session: number, cause: Of<'sessionEnding'>['cause'] = 'expired'): LockEvent => ({
  type: 'sessionEnding',
  session,
  cause,
});

export const ended = (session: number): LockEvent => ({ type: 'sessionEnded', session });

export const tookOver = (epoch: number, token: number): LockEvent => ({
  type: 'tookOver',
  epoch,
  token,
  reason: 'test',
});

export const configured = (version: number): LockEvent => ({ type: 'configured', version });

export const quarantined: LockEvent = { type: 'quarantined', name: 'a', reason: 'threw' };

const BEAT_MS = 250;

type WithoutLineage<T> = T extends unknown ? Omit<T, 'lineage'> : never;

type Step =
  | { readonly kind: 'entry'; readonly entry: HistoryEntry }
  | { readonly kind: 'client'; readonly record: ClientRecord }
  | { readonly kind: 'run'; readonly record: RunRecord };

/** Entries with rising indexes, and records between them, in the order in which they are written down. */
export class History {
  readonly steps: Step[] = [];
  readonly #latestKeys = new Map<number, string>();
  lineage = LINEAGE;
  epoch = 1;
  at = 0;
  index = 0;

  /** One entry with these events, now. */
  entry(...events: LockEvent[]): this {
    this.index += 1;
    return this.raw({ events });
  }

  /** An entry that differs from the next one in what is given. */
  raw(differs: Partial<HistoryEntry>): this {
    const { lineage, epoch, index, at } = this;
    const events = (differs.events ?? []).map((event) => this.#withKey(event));
    const entry = { lineage, epoch, index, at, wallMs: 0, eventHash: '', ...differs, events };
    this.steps.push({ kind: 'entry', entry });
    return this;
  }

  #withKey(event: LockEvent): LockEvent {
    if (event.type === 'granted') this.#latestKeys.set(event.token, event.key);
    if (event.type !== 'released' || event.key !== LATEST_KEY) return event;
    return { ...event, key: this.#latestKeys.get(event.token) ?? `key-${event.token}` };
  }

  /** Time passes with a beat every 250 ms, as while sessions are open (rule S1). */
  pass(ms: number): this {
    const until = this.at + ms;
    while (this.at + BEAT_MS < until) {
      this.at += BEAT_MS;
      this.entry();
    }
    this.at = until;
    return this;
  }

  /** Time passes without a commit. */
  standStill(ms: number): this {
    this.at += ms;
    return this;
  }

  client(...records: readonly WithoutLineage<ClientRecord>[]): this {
    for (const record of records) {
      this.steps.push({ kind: 'client', record: { lineage: this.lineage, ...record } as ClientRecord });
    }
    return this;
  }

  run(record: RunRecord): this {
    this.steps.push({ kind: 'run', record });
    return this;
  }

  check(options: CheckerOptions = {}, finish: FinishOptions = {}): Verdict {
    const checker = new HistoryChecker(options);
    for (const step of this.steps) {
      if (step.kind === 'entry') checker.entry(step.entry);
      else if (step.kind === 'client') checker.client(step.record);
      else checker.run(step.record);
    }
    return checker.finish(finish);
  }
}

/** Index 1: epoch 1 begins at token 1,000, configuration 1; sessions 1 to 4 with a TTL of 15 s are open. Time 0. */
export function begun(): History {
  return new History().entry(tookOver(1, 1_000), configured(1), opened(1), opened(2), opened(3), opened(4));
}

/** Options for histories under one configuration, version 1. */
export function under(config: Partial<NamespaceConfig>): CheckerOptions {
  return { configs: new Map([[1, namespaceConfig(config)]]) };
}
