/**
 * What no group may be told to serve. A manifest is checked field by field before it becomes a configuration; one that comes over
 * Admin.Configure may be anything, and a limit of zero or of 2^53 would be in force on every replica at once.
 */
import { MODES, type NamespaceConfig } from './config.ts';
import {
  CLIENT_LOCKS_MAX,
  HELD_LOCKS_MAX,
  HOLD_MS_MAX,
  HOLD_MS_MIN,
  LOCK_DELAY_MS_MAX,
  NAME_BYTES_MAX,
  OPERATIONS_PER_SECOND_MAX,
  PERMITS_MAX,
  SESSIONS_MAX,
  TTL_MS_MAX,
  TTL_MS_MIN,
  WAIT_MS_MAX,
  WAITERS_MAX,
  WAITERS_PER_NAME_MAX,
} from './limits.ts';
import { CONSUMERS_MAX, SEMAPHORES_MAX } from './locknamespace/bounds.ts';
import { nameProblem } from './names.ts';

/** Numbers with their least and greatest value. */
const RANGES = {
  ttlMs: [TTL_MS_MIN, TTL_MS_MAX],
  ttlMsMin: [TTL_MS_MIN, TTL_MS_MAX],
  ttlMsMax: [TTL_MS_MIN, TTL_MS_MAX],
  lockDelayMs: [0, LOCK_DELAY_MS_MAX],
  maxHoldMs: [HOLD_MS_MIN, HOLD_MS_MAX],
  maxWaitersPerName: [0, WAITERS_PER_NAME_MAX],
  maxWaitMs: [0, WAIT_MS_MAX],
  sessions: [1, SESSIONS_MAX],
  heldLocks: [1, HELD_LOCKS_MAX],
  waiters: [1, WAITERS_MAX],
  operationsPerSecond: [1, OPERATIONS_PER_SECOND_MAX],
  locksPerClient: [1, CLIENT_LOCKS_MAX],
  operationsPerSecondPerClient: [1, OPERATIONS_PER_SECOND_MAX],
} as const satisfies Partial<Record<keyof NamespaceConfig, readonly [number, number]>>;

/** A selector may stand for many Kubernetes namespaces. */
const CONSUMER_NAMESPACES_MAX = 64 * CONSUMERS_MAX;
const SAFETY_CLASSES: readonly string[] = ['Efficiency', 'Correctness'];

export interface ConfigProblem {
  /** As `semaphores.0.permits`. */
  readonly field: string;
  /** What it may be. */
  readonly limit: number | string;
  readonly reason: string;
}

/** All that is wrong with it; empty: it may be put into force. `config` has the right types, and any values. */
export function configProblems(config: NamespaceConfig): readonly ConfigProblem[] {
  const checks = [
    rangeProblems,
    betweenProblems,
    classProblems,
    modeProblems,
    semaphoreProblems,
    consumerProblems,
  ];
  return checks.flatMap((check) => check(config));
}

function rangeProblems(config: NamespaceConfig): ConfigProblem[] {
  return Object.entries(RANGES).flatMap(([field, [min, max]]) => {
    const value = config[field as keyof typeof RANGES];
    if (Number.isSafeInteger(value) && value >= min && value <= max) return [];
    return [
      { field, limit: `${min} to ${max}`, reason: `${field} is ${value}, and may be ${min} to ${max}` },
    ];
  });
}

function betweenProblems({ ttlMs, ttlMsMin, ttlMsMax }: NamespaceConfig): ConfigProblem[] {
  if (ttlMsMin <= ttlMs && ttlMs <= ttlMsMax) return [];
  const limit = `${ttlMsMin} to ${ttlMsMax}`;
  return [
    { field: 'ttlMs', limit, reason: `ttlMs is ${ttlMs}, not between ttlMsMin and ttlMsMax (${limit})` },
  ];
}

function problem(field: string, limit: number | string, reason: string): ConfigProblem {
  return { field, limit, reason: `${field} ${reason}` };
}

function classProblems({ safetyClass }: NamespaceConfig): ConfigProblem[] {
  if (SAFETY_CLASSES.includes(safetyClass)) return [];
  const known = SAFETY_CLASSES.join(', ');
  return [problem('safetyClass', known, `is ${JSON.stringify(safetyClass)}; it is one of ${known}`)];
}

function modeProblems({ modes }: NamespaceConfig): ConfigProblem[] {
  const known: readonly string[] = MODES;
  const isKnown = modes.length > 0 && modes.every((mode) => known.includes(mode));
  if (isKnown && new Set(modes).size === modes.length) return [];
  const all = known.join(', ');
  return [problem('modes', all, `is [${modes.join(', ')}]; it holds one or more of ${all}, each once`)];
}

function semaphoreProblems({ semaphores }: NamespaceConfig): ConfigProblem[] {
  const problems = semaphores
    .slice(0, SEMAPHORES_MAX)
    .flatMap(({ pattern, permits }, at) => [
      ...patternProblems(`semaphores.${at}.pattern`, pattern),
      ...permitProblems(`semaphores.${at}.permits`, permits),
    ]);
  if (semaphores.length <= SEMAPHORES_MAX) return problems;
  return [problem('semaphores', SEMAPHORES_MAX, `has over ${SEMAPHORES_MAX} patterns`), ...problems];
}

function patternProblems(field: string, pattern: string): ConfigProblem[] {
  const wrong = nameProblem(pattern) ?? (/\*./.test(pattern) ? 'a star stands at its end alone' : null);
  return wrong === null ? [] : [problem(field, NAME_BYTES_MAX, `is no pattern: ${wrong}`)];
}

function permitProblems(field: string, permits: number): ConfigProblem[] {
  if (Number.isSafeInteger(permits) && permits >= 1 && permits <= PERMITS_MAX) return [];
  return [problem(field, PERMITS_MAX, `is ${permits}, and may be 1 to ${PERMITS_MAX}`)];
}

function consumerProblems({ consumers }: NamespaceConfig): ConfigProblem[] {
  const all = consumers ?? [];
  const problems = all.slice(0, CONSUMER_NAMESPACES_MAX).flatMap(({ namespace, serviceAccounts }, at) => {
    const field = `consumers.${at}`;
    const isNobody = serviceAccounts?.length === 0 || serviceAccounts?.includes('') === true;
    const nobody = 'names nobody: say allServiceAccounts for all of them';
    return [
      ...(namespace === '' ? [problem(`${field}.namespace`, 'a Kubernetes namespace', 'is empty')] : []),
      ...(isNobody ? [problem(`${field}.serviceAccounts`, 'at least one name', nobody)] : []),
    ];
  });
  if (all.length <= CONSUMER_NAMESPACES_MAX) return problems;
  const many = `has over ${CONSUMER_NAMESPACES_MAX} entries`;
  return [problem('consumers', CONSUMER_NAMESPACES_MAX, many), ...problems];
}
