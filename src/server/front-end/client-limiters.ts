/**
 * The rate limiters of a front end's clients. A proven identity has one, whatever number of streams it opens, and keeps it for a while after
 * the last: a new stream is no fresh burst. Who proves nothing is counted by stream.
 */
import type { Identity } from '../../api/entry.ts';
import type { Clock } from '../../platform/runtime.ts';
import { RateLimiter } from './rate-limiter.ts';

/** A limiter that nobody used for so long is full again, so it can be forgotten. */
const IDLE_MS = 2_000;

export interface SharedLimiter extends Pick<RateLimiter, 'take' | 'giveBack'> {
  /** The stream is closed. */
  leave(): void;
}

interface Entry {
  readonly limiter: RateLimiter;
  streams: number;
  leftAtMs: number;
}

export class ClientLimiters {
  readonly #clock: Clock;
  readonly #byIdentity = new Map<string, Entry>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `identity` null: not proven. Call `leave` once when the stream ends. */
  of(identity: Identity | null): SharedLimiter {
    const now = this.#clock.monotonicMs();
    this.#forgetIdle(now);
    const key = identity === null ? null : `${identity.account} ${identity.podUid}`;
    const entry = this.#byIdentity.get(key ?? '') ?? {
      limiter: new RateLimiter(now),
      streams: 0,
      leftAtMs: now,
    };
    if (key !== null) this.#byIdentity.set(key, entry);
    entry.streams++;
    return {
      take: (perSecond, nowMs) => entry.limiter.take(perSecond, nowMs),
      giveBack: () => entry.limiter.giveBack(),
      leave: () => {
        entry.streams--;
        entry.leftAtMs = this.#clock.monotonicMs();
      },
    };
  }

  /** So that identities that come and go do not add up. */
  #forgetIdle(nowMs: number): void {
    for (const [key, { streams, leftAtMs }] of this.#byIdentity) {
      if (streams === 0 && nowMs - leftAtMs >= IDLE_MS) this.#byIdentity.delete(key);
    }
  }
}
