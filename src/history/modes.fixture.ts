/** Builders for histories of shared, semaphore and re-entrant locks. All are about the name `a`. */
import type { NamespaceConfig } from '../api/config.ts';
import type { LockEvent } from '../api/entry.ts';
import type { CheckerOptions } from './checker.ts';
import { granted, queued } from './history.fixture.ts';
import { namespaceConfig } from './model.fixture.ts';

type Granted = Extract<LockEvent, { type: 'granted' }>;

export const reader = (token: number, session: number, differs: Partial<Granted> = {}): LockEvent =>
  granted(token, session, 'a', { mode: 'shared', ...differs });

export const taker = (
  token: number,
  session: number,
  permits: number,
  differs: Partial<Granted> = {},
): LockEvent => granted(token, session, 'a', { mode: 'semaphore', permits, ...differs });

/** A grant of the queue to the key `q<session>`. */
export const fromQueue = (waitedMs: number, session: number): Partial<Granted> => ({
  key: `q${session}`,
  fromQueue: true,
  waitedMs,
});

export const joined = (
  token: number,
  session: number,
  key: string,
  differs: Partial<Granted> = {},
): LockEvent => granted(token, session, 'a', { key, joined: true, ...differs });

/** Waits under the key `q<session>`. */
export const readerWaits = (session: number, position: number): LockEvent =>
  queued(`q${session}`, session, position, { mode: 'shared' });

export const takerWaits = (session: number, position: number, permits: number): LockEvent =>
  queued(`q${session}`, session, position, { mode: 'semaphore', permits });

/** What `configured(1)`, `configured(2)` and so on stored. */
export function underEach(...configs: readonly (Partial<NamespaceConfig> | null)[]): CheckerOptions {
  const stored = configs.map((config) => (config === null ? null : namespaceConfig(config)));
  return { configs: new Map(stored.map((config, place) => [place + 1, config])) };
}

/** `a` is a semaphore. */
export const pool = (permits: number): Partial<NamespaceConfig> => ({
  semaphores: [{ pattern: 'a', permits }],
});
