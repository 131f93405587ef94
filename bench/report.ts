/**
 * What was measured, a line at a time: for people, or one JSON object a line.
 */
import type { Summary } from './measure.ts';

export class Report {
  readonly #isJson: boolean;

  constructor(isJson: boolean) {
    this.#isJson = isJson;
  }

  /** A part begins. */
  part(title: string): void {
    if (!this.#isJson) console.log(`\n${title}`);
  }

  /** A rate with its latencies; those that are 0 were not measured. */
  row(what: string, summary: Summary, notes = ''): void {
    if (this.#isJson) {
      console.log(JSON.stringify({ what, ...summary, notes }));
      return;
    }
    const columns = [
      what.padEnd(54),
      `${Math.round(summary.perSecond)}/s`.padStart(12),
      summary.p50Ms === 0 ? ''.padStart(18) : `p50 ${summary.p50Ms.toFixed(2)} ms`.padStart(18),
      summary.p99Ms === 0 ? ''.padStart(18) : `p99 ${summary.p99Ms.toFixed(2)} ms`.padStart(18),
    ];
    console.log(`${columns.join('')}   ${notes}`.trimEnd());
  }

  /** A figure of another kind. */
  figures(what: string, figures: Readonly<Record<string, number | string>>): void {
    if (this.#isJson) {
      console.log(JSON.stringify({ what, ...figures }));
      return;
    }
    const list = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
    console.log(`${what.padEnd(54)}   ${list.join(', ')}`);
  }

  notRun(what: string, why: string): void {
    if (this.#isJson) console.log(JSON.stringify({ what, notRun: why }));
    else console.log(`${what.padEnd(54)}   not run: ${why}`);
  }
}

export const times = (value: number, of: number): string => `${(value / of).toFixed(2)} x`;
