/**
 * The part of a plan that says which locks are asked for, and how: modes, permits, owners, re-entrancy. Drawn from a stream of
 * its own, and nothing is drawn where only plain exclusive locks are asked for, so that such a run stays as it always was.
 */
import type { Mode, NamespaceConfig, SemaphorePattern } from '../../src/api/config.ts';
import { permitsOf } from '../../src/core/policy.ts';
import type { Random } from '../support/random.ts';

/** Chances from 0 to 1 unless said otherwise. */
export interface LockHabits {
  readonly modes: readonly Mode[];
  readonly reentrant: number;
  /** That one more is taken while one is held: a share of a re-entrant grant, or a further grant. */
  readonly takesMore: number;
  /** That a mode or a number of permits is asked for that the name does not have. */
  readonly asksWrong: number;
  /** Whom locks are asked for; undefined: nobody is named, so it is the session's client. */
  readonly owners: readonly (string | undefined)[];
}

/** What an acquire asks for, its name aside. */
export interface Asked {
  readonly mode: Mode;
  readonly permits: number;
  readonly reentrant: boolean;
  readonly owner: string | undefined;
}

export const PLAIN_LOCKS: LockHabits = {
  modes: ['exclusive'],
  reentrant: 0,
  takesMore: 0,
  asksWrong: 0,
  owners: [undefined],
};
const PLAIN: Asked = { mode: 'exclusive', permits: 1, reentrant: false, owner: undefined };
const PLAIN_SHARE = 0.45;
const ALL_MODES = ['exclusive', 'shared', 'semaphore'] as const;
const PERMITS_MAX = 4;

export function isPlain({ modes, reentrant }: LockHabits): boolean {
  return reentrant === 0 && modes.every((mode) => mode === 'exclusive');
}

export function makeLocks(random: Random): LockHabits {
  if (random.chance(PLAIN_SHARE)) return PLAIN_LOCKS;
  const modes: readonly Mode[] = random.pick([
    ['exclusive'],
    ['shared'],
    ['semaphore'],
    ['exclusive', 'shared'],
    ['exclusive', 'semaphore'],
    ALL_MODES,
    ALL_MODES,
  ]);
  return {
    modes,
    reentrant: modes.length === 1 && modes[0] === 'exclusive' ? 0.7 : random.pick([0, 0.3, 0.8]),
    takesMore: random.pick([0, 0.05, 0.3]),
    asksWrong: random.pick([0, 0.1]),
    owners: random.pick([[undefined], ['one', 'other']]),
  };
}

/** The same configuration, so that these locks can be asked for in it. */
export function allowing(
  config: NamespaceConfig,
  locks: LockHabits,
  names: number,
  random: Random,
): NamespaceConfig {
  if (isPlain(locks)) return config;
  const { modes } = locks;
  const isAllowed = random.chance(0.9) || modes.length === 1;
  return {
    ...config,
    modes: isAllowed ? modes : withoutOne(modes, random),
    semaphores: modes.includes('semaphore') ? makeSemaphores(names, modes.length === 1, random) : [],
  };
}

function makeSemaphores(names: number, isAll: boolean, random: Random): readonly SemaphorePattern[] {
  const permits = (): number => random.between(1, PERMITS_MAX);
  const own = Array.from({ length: names }, (_, i) => ({ pattern: `job-${i}`, permits: permits() }));
  const chosen = own.filter(() => random.chance(0.5));
  return isAll || random.chance(0.2) ? [...chosen, { pattern: 'job-*', permits: permits() }] : chosen;
}

/** One change while locks are held: permits raised or cut, patterns and modes taken away or put back (rules C9, C11). */
export function changeLive(
  config: NamespaceConfig,
  locks: LockHabits,
  names: number,
  random: Random,
): NamespaceConfig {
  const { semaphores, modes } = config;
  const place = semaphores.length === 0 ? -1 : random.int(semaphores.length);
  const known = semaphores[place];
  switch (random.pick(['raise', 'raise', 'cut', 'cut', 'cut', 'remove', 'add', 'modes'] as const)) {
    case 'raise':
      if (known === undefined) return config;
      return withPattern(config, place, { ...known, permits: known.permits + random.between(1, 3) });
    case 'cut': {
      if (known === undefined) return config;
      const permits = random.chance(0.5) ? 1 : Math.max(1, known.permits - 1);
      return withPattern(config, place, { ...known, permits });
    }
    case 'remove':
      return { ...config, semaphores: semaphores.filter((_, i) => i !== place) };
    case 'add': {
      if (!locks.modes.includes('semaphore')) return config;
      const pattern = random.chance(0.2) ? 'job-*' : `job-${random.int(names)}`;
      // In front of those that are there: the first match wins (rule C2).
      const others = semaphores.filter((one) => one.pattern !== pattern);
      return { ...config, semaphores: [{ pattern, permits: random.between(1, PERMITS_MAX) }, ...others] };
    }
    case 'modes':
      if (modes.length < locks.modes.length) return { ...config, modes: locks.modes };
      return { ...config, modes: withoutOne(modes, random) };
  }
}

/** A namespace allows at least one mode. */
function withoutOne(modes: readonly Mode[], random: Random): readonly Mode[] {
  const place = random.int(modes.length);
  return modes.length === 1 ? modes : modes.filter((_, i) => i !== place);
}

function withPattern(config: NamespaceConfig, place: number, pattern: SemaphorePattern): NamespaceConfig {
  return { ...config, semaphores: config.semaphores.map((one, i) => (i === place ? pattern : one)) };
}

/** What a worker asks for at a name: mostly something that its namespace allows. */
export function chooseLock(
  locks: LockHabits,
  config: NamespaceConfig | null,
  name: string,
  random: Random,
): Asked {
  if (isPlain(locks)) return PLAIN;
  const permits = permitsOf(config, name);
  const fitting = locks.modes.filter((mode) => (mode === 'semaphore') === (permits !== null));
  const isWrong = fitting.length === 0 || random.chance(locks.asksWrong);
  const mode = random.pick(isWrong ? locks.modes : fitting);
  const permitsMax = (permits ?? 1) + (isWrong ? 1 : 0);
  return {
    mode,
    permits: mode === 'semaphore' ? random.between(1, permitsMax) : 1,
    reentrant: random.chance(locks.reentrant),
    owner: random.pick(locks.owners),
  };
}
