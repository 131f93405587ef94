/**
 * Whether the group counts the same grants for a session as its owner believes in (rule S3): by their number and a digest
 * over their tokens, which come with every answer to a keepalive.
 */
import type { Token } from '../api/entry.ts';
import { digestOf, type KeepaliveStatus } from '../api/wire.ts';

/** Differences in a row before they count: one may be an answer that crossed with a change. */
const MISMATCHES_MAX = 2;

export class BeliefCheck {
  #mismatches = 0;

  /** `isSettled`: nothing is under way that may change what either side counts. True: ask for the list. */
  differs(
    status: Extract<KeepaliveStatus, { alive: true }>,
    tokens: Iterable<Token>,
    isSettled: boolean,
  ): boolean {
    // A grant that is being revoked is over here at its deadline, and counts there until one TTL after the revoke (rule C9).
    const revoking = status.revoking.map(({ token }) => token);
    const expected = revoking.length === 0 ? tokens : new Set([...tokens, ...revoking]);
    let grants = 0;
    let digest = 0;
    for (const token of expected) {
      grants++;
      digest ^= digestOf(token);
    }
    const isSame = grants === status.grants && digest >>> 0 === status.digest;
    this.#mismatches = isSame || !isSettled ? 0 : this.#mismatches + 1;
    if (this.#mismatches < MISMATCHES_MAX) return false;
    this.#mismatches = 0;
    return true;
  }
}
