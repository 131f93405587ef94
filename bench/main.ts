/**
 * `npm run bench`: all measurements in one run, so that they can be compared with each other. `--seconds N` for each part
 * (default 5), `--json` for one JSON object a line.
 */
import { parseArgs } from 'node:util';
import { sidecarHttp } from './http.ts';
import type { Summary } from './measure.ts';
import { bareCommit, leaderLoop, oneName, uncontended } from './scenarios.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '5' }, json: { type: 'boolean', default: false } },
});
const seconds = Number(values.seconds);
if (!(seconds >= 1 && seconds <= 600)) throw new RangeError('--seconds takes 1 to 600');

function report(what: string, summary: Summary, notes: string): void {
  if (values.json) {
    console.log(JSON.stringify({ what, ...summary, notes }));
    return;
  }
  const columns = [
    what.padEnd(44),
    `${Math.round(summary.perSecond)}/s`.padStart(12),
    summary.p50Ms === 0 ? ''.padStart(20) : `p50 ${summary.p50Ms.toFixed(2)} ms`.padStart(20),
    summary.p99Ms === 0 ? ''.padStart(18) : `p99 ${summary.p99Ms.toFixed(2)} ms`.padStart(18),
  ];
  console.log(`${columns.join('')}   ${notes}`);
}

const ratio = (value: number, of: number): string => `${(value / of).toFixed(2)} x`;

const commit = await bareCommit(seconds);
report('bare node:sqlite commit (yardstick)', commit, 'one synced row at a time');
for (const rate of [200, 2_000, 10_000]) {
  const summary = await uncontended(rate, seconds);
  report(
    `uncontended, ${rate} ops/s planned`,
    summary,
    `p50 ${ratio(summary.p50Ms, commit.p50Ms)} a bare commit`,
  );
}
for (const workers of [2, 100]) {
  const summary = await oneName(workers, seconds);
  const handOvers = summary.perSecond / commit.perSecond;
  report(
    `one name, ${workers} workers (hand-overs)`,
    summary,
    `${handOvers.toFixed(2)} a bare commit; p99 of the wait / mean ${summary.unfairness.toFixed(2)}`,
  );
}
for (const rate of [200, 1_000]) {
  const http = await sidecarHttp(rate, seconds);
  const protocol = await uncontended(rate, seconds);
  const extraMs = http.p50Ms - protocol.p50Ms;
  report(
    `sidecar HTTP, ${rate} calls/s planned`,
    http,
    `p50 ${extraMs.toFixed(2)} ms over the lock protocol`,
  );
}
report('leader loop on the memory log, packed', await leaderLoop(seconds), 'load generator on the same core');
report('bare node:sqlite commit again', await bareCommit(seconds), 'shows how much the machine drifted');
