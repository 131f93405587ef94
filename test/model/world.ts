/**
 * What one random run is like: few names and accounts, so that commands meet each other; limits that are often tiny; and the
 * mix of commands, in which each kind may be missing, so that the others get further (swarm testing).
 */
import type { Mode, NamespaceConfig, SemaphorePattern } from '../../src/api/config.ts';
import { MODES } from '../../src/api/config.ts';
import type { Random } from '../support/random.ts';

export const ACCOUNTS = ['a/one', 'a/two', 'b/one', 'c/one'] as const;
const CONSUMERS: readonly NamespaceConfig['consumers'][] = [
  null,
  null,
  null,
  null,
  null,
  [{ namespace: 'a', serviceAccounts: null }],
  [
    { namespace: 'a', serviceAccounts: ['one'] },
    { namespace: 'b', serviceAccounts: null },
  ],
  [{ namespace: 'c', serviceAccounts: ['one'] }],
  [],
];
const NAMES = ['x', 'p/é', 'x/y', 'x/', ' x', 'é', 'p/', 'p/e\u0301', '🔒', '\0'] as const;
/** They overlap, and the order in which a configuration has them decides (rule C2). */
const PATTERNS = ['*', 'x*', 'x/*', 'x/y', 'p/*', 'p/é', 'é', 'name-1*', 'name-*'] as const;

/** Kinds of steps, more than there are types of commands where one type has several typical uses. */
export const STEPS = [
  'acquire',
  'repeat',
  'reuseKey',
  'malformed',
  'release',
  'releaseWrong',
  'cancel',
  'ack',
  'open',
  'attach',
  'close',
  'expire',
  'configure',
  'unconfigure',
  'break',
  'quarantine',
  'unquarantine',
  'reportStale',
  'raiseBehaviour',
] as const;
export type Step = (typeof STEPS)[number];

const USUAL_WEIGHTS: Readonly<Record<Step, number>> = {
  acquire: 40,
  repeat: 6,
  reuseKey: 2,
  malformed: 1,
  release: 25,
  releaseWrong: 3,
  cancel: 8,
  ack: 4,
  open: 2,
  attach: 2,
  close: 1,
  expire: 1,
  configure: 1,
  unconfigure: 0.1,
  break: 3,
  quarantine: 0.5,
  unquarantine: 1.5,
  reportStale: 0.5,
  raiseBehaviour: 0.1,
};
const ALWAYS: ReadonlySet<Step> = new Set(['acquire', 'open', 'release', 'unquarantine']);

export interface World {
  readonly names: readonly string[];
  /** In the order of STEPS. */
  readonly weights: readonly number[];
  /** Largest number of commands of an entry. */
  readonly batchMax: number;
  /** Chance that an entry moves group time on. */
  readonly timeMoves: number;
  readonly sessionsWanted: number;
  readonly maxHoldMs: readonly number[];
  readonly waitMs: readonly number[];
  readonly owners: readonly string[];
  /** For names that are no semaphores. */
  readonly modes: readonly Mode[];
  readonly permits: readonly number[];
  /** Chance that an acquire is re-entrant. */
  readonly reentrant: number;
  /** Chance that a configuration has semaphores. */
  readonly semaphores: number;
  /** Those that most of its configurations have. */
  readonly patterns: readonly string[];
  /** Whether the first entry raises the behaviour level. */
  readonly startsRaised: boolean;
}

export function makeWorld(random: Random, isLarge: boolean): World {
  const names = isLarge
    ? Array.from({ length: random.between(1, 1_500) }, (_, i) => `name-${i}`)
    : NAMES.slice(0, random.between(1, NAMES.length));
  return {
    names,
    weights: STEPS.map((step) => {
      if (!ALWAYS.has(step) && random.chance(0.2)) return 0;
      return USUAL_WEIGHTS[step] * random.pick([0.3, 1, 1, 3]);
    }),
    batchMax: isLarge ? 1_200 : random.pick([1, 3, 10, 40]),
    timeMoves: random.pick([0.1, 0.5, 0.9]),
    sessionsWanted: isLarge ? random.between(2, 40) : random.between(2, 9),
    maxHoldMs: random.pick([[0], [0, 1_000, 5_000], [1_000, 2_000, 86_400_000]]),
    waitMs: random.pick([[0], [0, 1, 1_000, 60_000], [1_000, 5_000, 86_400_000], [1, 2, 3]]),
    owners: random.pick([['me'], ['', 'me'], ['', 'me', 'you']]),
    modes: random.pick<readonly Mode[]>([
      ['exclusive'],
      ['shared'],
      ['exclusive', 'shared', 'shared', 'shared'],
      ['exclusive', 'exclusive', 'shared'],
    ]),
    permits: random.pick([[1], [1, 1, 2], [1, 2, 3, 5], [1, 1, 1, 4]]),
    reentrant: random.pick([0, 0.2, 0.8]),
    semaphores: random.pick([0, 0.5, 1]),
    patterns: manyPatterns(random),
    startsRaised: random.chance(0.85),
  };
}

/** Mostly the world's patterns with other permits than before; else any in any order, so that a name may have none any more. */
function makeSemaphores(random: Random, usual: readonly string[]): SemaphorePattern[] {
  const patterns = random.chance(0.7) ? usual : manyPatterns(random);
  return patterns.map((pattern) => ({ pattern, permits: random.pick([1, 2, 3, 5, 10]) }));
}

function manyPatterns(random: Random): string[] {
  return Array.from({ length: random.between(1, 3) }, () => random.pick(PATTERNS));
}

/** Limits: mostly ample, often tiny, each on its own. */
export function makeConfig(random: Random, isLarge: boolean, world: World): NamespaceConfig {
  const limit = (tiny: readonly number[], ample: number): number =>
    !isLarge && random.chance(0.2) ? random.pick(tiny) : ample;
  return {
    namespace: 'a',
    name: 'model',
    safetyClass: 'Efficiency',
    ttlMs: 15_000,
    ttlMsMin: 5_000,
    ttlMsMax: 60_000,
    lockDelayMs: random.pick([0, 0, 1, 1_000, 7_000]),
    maxHoldMs: random.pick([1_000, 60_000, 86_400_000, 86_400_000]),
    modes: random.chance(0.1) ? MODES.filter(() => random.chance(0.6)) : MODES,
    maxWaitersPerName: limit([1, 2, 5], 10_000),
    maxWaitMs: random.chance(0.15) ? 4_000 : 86_400_000,
    sessions: limit([1, 3, 5], 1_000),
    heldLocks: limit([1, 2, 4], 100_000),
    waiters: limit([1, 3, 8], 100_000),
    operationsPerSecond: 1_000,
    locksPerClient: limit([1, 2, 4], 100_000),
    operationsPerSecondPerClient: 1_000,
    semaphores: random.chance(world.semaphores) ? makeSemaphores(random, world.patterns) : [],
    consumers: random.pick(CONSUMERS),
  };
}
