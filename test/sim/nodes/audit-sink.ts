/** Where the audit goes: far away, sometimes not there, sometimes silent about what it has taken. */

import type { AuditBatch } from '../../../src/server/audit/records.ts';
import { type AuditSink, BusySinkError, unlessAborted } from '../../../src/server/audit/sink.ts';
import type { AuditJudge } from '../judge/audit-judge.ts';
import type { Life } from '../world/process.ts';

const TRAVEL_MS_MAX = 200;
const BUSY_MS = 20_000;

export class VirtualSink implements AuditSink {
  readonly kind = 'http';
  readonly #life: Life;
  readonly #judge: AuditJudge;

  constructor(life: Life, judge: AuditJudge) {
    this.#life = life;
    this.#judge = judge;
  }

  async write(batch: AuditBatch, signal: AbortSignal): Promise<void> {
    const { random } = this.#life.runtime;
    const chance = this.#judge.isCalm ? 1 : random.fraction();
    await this.#travel(signal);
    if (chance < 0.03) throw new BusySinkError('it is busy', BUSY_MS);
    if (chance < 0.1) throw new Error('it is not there');
    this.#judge.took(batch);
    if (chance < 0.2) throw new Error('its answer got lost');
    await this.#travel(signal);
  }

  async close(): Promise<void> {
    // It is nobody's but its process's.
  }

  #travel(signal: AbortSignal): Promise<void> {
    const delayMs = TRAVEL_MS_MAX * this.#life.runtime.random.fraction() ** 3;
    return unlessAborted(this.#life.sleep(delayMs), signal);
  }
}
