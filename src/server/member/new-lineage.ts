/**
 * The way out of a halt (rule S10): what the next life of a log has to respect, worked out from what is left of this one. A rolled-back log
 * knows less than what happened, so the token floor lies far above what it shows, and the wait is that of the longest lease there can be.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import { LOCK_DELAY_MS_MAX, TOKEN_MAX, TTL_MS_MAX } from '../../api/limits.ts';
import { assert, FormatError, type State } from '../../core/index.ts';
import { CorruptLogError, type LockLog, ReplacedError, type Standing } from '../../log/port.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { floorOfBirth } from '../leader/take-over.ts';
import { recover } from '../snapshots/recovery.ts';

/** Room for tokens that were given after what the log shows (rule C12). */
const UNKNOWN_TOKENS = 2 ** 46;

export interface NextLineage {
  readonly standing: Standing;
  /** Null: the log cannot be read, so nothing is known but the clock. */
  readonly known: { readonly lastToken: number; readonly sessions: number; readonly held: number } | null;
  readonly tokenFloor: number;
  readonly quietMs: number;
}

/** `config`: of the manifest, where there is one. Changes nothing. @throws ReplacedError, LogUnavailableError */
export async function planLineage(
  log: LockLog,
  { clock, logger }: Runtime,
  config: NamespaceConfig | null,
): Promise<NextLineage> {
  const standing = await log.standing();
  if (standing.lineage !== log.lineage) throw new ReplacedError();
  const state = await stateOf(log, logger);
  const { tokenFloor: lastFloor } = await log.birth();
  const lastToken = Math.max(state?.lastToken ?? 0, lastFloor);
  const clockFloor = floorOfBirth(clock.wallMs());
  const tokenFloor = Math.min(Math.max(clockFloor, lastToken + UNKNOWN_TOKENS), TOKEN_MAX - 1);
  const quietMs = longestLeaseMs([config, state?.config ?? null]);
  assert(tokenFloor > lastToken, 'tokens of the next lineage are greater');
  assert(quietMs > 0, 'holders of this lineage are waited for');
  const { sessions, holds } = state ?? { sessions: null, holds: 0 };
  const known = state === null ? null : { lastToken, sessions: sessions?.size ?? 0, held: holds };
  return { standing, known, tokenFloor, quietMs };
}

async function stateOf(log: LockLog, logger: Runtime['logger']): Promise<State | null> {
  try {
    return (await recover(log, logger)).state;
  } catch (error) {
    if (error instanceof CorruptLogError || error instanceof FormatError) return null;
    throw error;
  }
}

/** Longest TTL and lock-delay under any of these; the greatest that there can be, where none is known. */
function longestLeaseMs(configs: readonly (NamespaceConfig | null)[]): number {
  const known = configs.filter((config) => config !== null);
  if (known.length === 0) return TTL_MS_MAX + LOCK_DELAY_MS_MAX;
  const most = (of: (config: NamespaceConfig) => number): number => Math.max(...known.map(of));
  return most(({ ttlMsMax }) => ttlMsMax) + most(({ lockDelayMs }) => lockDelayMs);
}
