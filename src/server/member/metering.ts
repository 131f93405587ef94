/**
 * A lock group's metrics, read off its committed history: counted once, after the commit, away from the leader's loop.
 */
import type { HistoryEntry, LockEvent, Token } from '../../api/entry.ts';
import type { ServerMetrics } from '../../platform/metrics.ts';
import type { CommitStats } from '../leader/leader-options.ts';

export class Metering {
  readonly #metrics: ServerMetrics;
  /**
   * Group time of each grant seen; those from before this leadership are not measured: which of them ended under another leader is not known here,
   * and they would add up.
   */
  readonly #since = new Map<Token, number>();

  constructor(metrics: ServerMetrics) {
    this.#metrics = metrics;
  }

  committed({ events, at }: HistoryEntry, { commitMs, commands, stalledMs }: CommitStats): void {
    this.#metrics.committed(commitMs, commands);
    if (stalledMs > 0) this.#metrics.stalled(stalledMs);
    for (const event of events) this.#count(event, at);
  }

  #count(event: LockEvent, at: number): void {
    switch (event.type) {
      case 'granted':
        this.#metrics.granted(event.waitedMs);
        // One that joined is held since the first acquire, and until the last is given back (rule C6).
        if (!event.joined) this.#since.set(event.token, at);
        return;
      case 'released':
      case 'cancelled':
        if (event.remaining === 0) this.#ended(event.token, at);
        return;
      case 'revoked':
      case 'expired':
        this.#ended(event.token, at);
        return;
      case 'refused':
        this.#metrics.refused(event.code);
        return;
      case 'sessionEnding':
        if (event.cause !== 'closed') this.#metrics.sessionExpired(event.cause);
        return;
      case 'tookOver':
        this.#since.clear();
        this.#metrics.leaderChanged();
        return;
      case 'fencingRejected':
        this.#metrics.fencingRejected();
        return;
      default:
        return;
    }
  }

  #ended(token: Token, at: number): void {
    const since = this.#since.get(token);
    if (since === undefined) return;
    this.#since.delete(token);
    this.#metrics.held(at - since);
  }
}
