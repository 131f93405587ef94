/**
 * What a front end refuses before it gets near the leader: none of it needs lock state, and none of it consumes anything, not even the
 * request's key (rules C4, S9).
 */
import type { NamespaceConfig } from '../../api/config.ts';
import { bucketOf } from '../../api/names.ts';
import { type AnswerBody, type ClientRequest, unavailable } from '../../api/wire.ts';
import { isConsumer } from '../../core/index.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Client } from './client.ts';
import { RateLimiter } from './rate-limiter.ts';
import { requestProblem } from './validate.ts';

/** A group's part of its namespace's names: buckets, by the shard map of this version. */
export interface Shard {
  readonly mapVersion: number;
  readonly serves: (bucket: number) => boolean;
}

/** Clocks may differ by so much before a token counts as expired. */
export const TOKEN_LEEWAY_MS = 60_000;

export const NOBODY_LEADS = 'no lock server leads this namespace right now';

/** What a front end can offer at this moment. */
export interface Serving {
  /** Of the log; empty: not known yet. */
  readonly lineage: string;
  /** False: nobody leads, and nobody is waited for. */
  readonly isServed: boolean;
}

export class Admission {
  readonly #runtime: Runtime;
  readonly #config: () => NamespaceConfig | null;
  readonly #shard: (() => Shard) | null;
  readonly #namespaceLimiter: RateLimiter;

  constructor(runtime: Runtime, config: () => NamespaceConfig | null, shard: (() => Shard) | null) {
    this.#runtime = runtime;
    this.#config = config;
    this.#shard = shard;
    this.#namespaceLimiter = new RateLimiter(runtime.clock.monotonicMs());
  }

  /** Null: it may go to the leader. */
  refusal(client: Client, { id, body }: ClientRequest, { lineage, isServed }: Serving): AnswerBody | null {
    if (client.memory.isWaiting(id)) {
      const message = `another request ${id} of this stream has no answer yet`;
      return { type: 'rejected', code: 'INVALID', field: 'id', message };
    }
    const problem = requestProblem(body);
    if (problem !== null) return { type: 'rejected', code: 'INVALID', ...problem };
    if (this.#isOfOtherLineage(client, body, lineage)) {
      return { type: 'refused', code: 'SESSION_EXPIRED', message: 'this session is of an earlier lineage' };
    }
    const isLimited = body.type === 'acquire' || body.type === 'getLock' || body.type === 'listLocks';
    const isNew = isLimited || body.type === 'open' || body.type === 'reportStale';
    if (isNew && this.#runtime.clock.wallMs() > client.provenUntilMs) return expired(client.provenUntilMs);
    const foreign = this.#foreign(client, body);
    if (foreign !== null) return foreign;
    const elsewhere = this.#elsewhere(body);
    if (elsewhere !== null) return elsewhere;
    if (!isServed) return unavailable(NOBODY_LEADS);
    // Rule S9: what gives something back, or keeps it, has no rate limit.
    return isLimited ? this.#rateRefusal(client) : null;
  }

  /**
   * Session ids begin anew with each lineage, so a session of another one must not be taken for one of this (rule S10). What was opened or
   * attached over this very stream is of this one, and an attach proves itself by its secret.
   */
  #isOfOtherLineage({ lineage, memory }: Client, body: ClientRequest['body'], own: string): boolean {
    if (lineage === '' || own === '' || lineage === own) return false;
    if (!('session' in body) || body.session === 0 || body.type === 'attachWithSecret') return false;
    return !memory.sessions.has(body.session);
  }

  /**
   * Whoever is no consumer neither looks nor reports: a token for our audience is to be had by every pod of a cluster. Of sessions and grants
   * the core decides, which has the state.
   */
  #foreign({ identity }: Client, { type }: ClientRequest['body']): AnswerBody | null {
    if (type !== 'getLock' && type !== 'listLocks' && type !== 'reportStale') return null;
    const config = this.#config();
    if (config === null || isConsumer(config, identity)) return null;
    const message = `${identity.account} is not a consumer of this namespace`;
    return { type: 'rejected', code: 'FORBIDDEN', message };
  }

  /** What is held already is kept and given back here, whatever the map says of its name by now. */
  #elsewhere(body: ClientRequest['body']): AnswerBody | null {
    if (this.#shard === null || (body.type !== 'acquire' && body.type !== 'getLock')) return null;
    const { serves, mapVersion } = this.#shard();
    return serves(bucketOf(body.name)) ? null : { type: 'wrongGroup', mapVersion };
  }

  #rateRefusal({ limiter }: Client): AnswerBody | null {
    const config = this.#config();
    if (config === null) return null;
    const now = this.#runtime.clock.monotonicMs();
    const ownMs = limiter.take(config.operationsPerSecondPerClient, now);
    if (ownMs > 0) return this.#rateLimited('this client', config.operationsPerSecondPerClient, ownMs);
    const sharedMs = this.#namespaceLimiter.take(config.operationsPerSecond, now);
    if (sharedMs === 0) return null;
    limiter.giveBack();
    return this.#rateLimited('this namespace', config.operationsPerSecond, sharedMs);
  }

  #rateLimited(who: string, limit: number, waitMs: number): AnswerBody {
    const retryAfterMs = Math.ceil(waitMs + this.#runtime.random.fraction() * 1000);
    const message = `${who} may start ${limit} operations per second`;
    return { type: 'rejected', code: 'RATE_LIMITED', message, limit, retryAfterMs };
  }
}

function expired(untilMs: number): AnswerBody {
  const message = `the token of this stream ended at ${new Date(untilMs - TOKEN_LEEWAY_MS).toISOString()}: connect with a fresh one; what is held can be kept and given back meanwhile`;
  return { type: 'rejected', code: 'UNAUTHENTICATED', message };
}
