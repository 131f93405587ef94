/**
 * Waiting times between tries: "full jitter", a uniformly random part of an exponentially growing limit. Of the ways compared
 * in "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015) it costs the fewest calls among many contenders:
 * `sleep = random_between(0, min(cap, base * 2 ** attempt))`.
 */
import type { ClientRuntime } from './runtime.ts';

export interface Backoff {
  /** Limit of the first wait, ms. */
  readonly baseMs: number;
  /** No wait is longer, ms. */
  readonly capMs: number;
}

/** `attempt` counts from 0. */
export function fullJitterMs(
  random: ClientRuntime['random'],
  { baseMs, capMs }: Backoff,
  attempt: number,
): number {
  return random.fraction() * Math.min(capMs, baseMs * 2 ** attempt);
}

/** Not before the service wants it, and not all at once then. */
export function retryDelayMs(
  random: ClientRuntime['random'],
  backoff: Backoff,
  { attempt, retryAfterMs }: { readonly attempt: number; readonly retryAfterMs: number },
): number {
  return retryAfterMs + fullJitterMs(random, backoff, attempt);
}
