/** Running seeds for people: what was found, how to repeat it, and what led to it. */
import { type RunReport, simulate } from './simulation.ts';

/** Lines shown before a finding. */
const LINES_BEFORE = 120;

function commandFor(seed: number, hours: number): string {
  return `npm run sim -- --seed ${seed} --hours ${hours}`;
}

/** One line: the finding and the command that repeats it. */
export function describe({ seed, findings }: RunReport, hours: number): string {
  const [first] = findings;
  if (first === undefined) return `seed ${seed}: nothing found`;
  return `seed ${seed}: ${first.property} at ${first.atMs} ms: ${first.message}\n  to repeat: ${commandFor(seed, hours)}`;
}

/** Runs one seed with its story. False: something was found. */
export async function showSeed(options: {
  readonly seed: number;
  readonly hours: number;
  readonly isVerbose: boolean;
}): Promise<boolean> {
  const { seed, hours, isVerbose } = options;
  const lines: string[] = [];
  const onTrace = (nowMs: number, text: string): void => {
    const line = `${nowMs.toFixed(3).padStart(14)} ${text}`;
    if (isVerbose) console.log(line);
    else if (lines.push(line) > 2 * LINES_BEFORE) lines.splice(0, LINES_BEFORE);
  };
  const startedMs = cpuMs();
  const report = await simulate({ seed, hours, onTrace });
  if (report.findings.length > 0) for (const line of lines.slice(-LINES_BEFORE)) console.log(line);
  console.log(describe(report, hours));
  console.log(summary([report], cpuMs() - startedMs));
  return report.findings.length === 0;
}

export async function runSeeds(options: {
  readonly first: number;
  readonly count: number;
  readonly hours: number;
}): Promise<boolean> {
  const { first, count, hours } = options;
  const startedMs = cpuMs();
  const reports: RunReport[] = [];
  let failed = 0;
  for (let seed = first; seed < first + count; seed++) {
    const report = await simulate({ seed, hours });
    reports.push(report);
    if (report.findings.length === 0) continue;
    failed++;
    console.log(describe(report, hours));
  }
  console.log(summary(reports, cpuMs() - startedMs));
  console.log(`${count - failed} of ${count} seeds found nothing`);
  return failed === 0;
}

/** Processor time so far: what a run costs, however busy the machine is. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function summary(reports: readonly RunReport[], tookMs: number): string {
  const sum = (count: (report: RunReport) => number): number =>
    reports.reduce((all, report) => all + count(report), 0);
  const hours = sum(({ virtualMs }) => virtualMs) / 3_600_000;
  const faults = new Map<string, number>();
  for (const report of reports) {
    for (const [kind, count] of report.faults) faults.set(kind, (faults.get(kind) ?? 0) + count);
  }
  return [
    `${hours.toFixed(1)} virtual hours in ${(tookMs / 1_000).toFixed(1)} s of one core (${((hours / tookMs) * 60_000).toFixed(0)} hours a minute), ` +
      `${sum(({ steps }) => steps)} steps`,
    `${sum(({ grants }) => grants)} grants, ${sum(({ sessions }) => sessions)} sessions, ${sum(({ entries }) => entries)} entries, ` +
      `${sum(({ takeOvers }) => takeOvers)} take-overs, ${sum(({ calls }) => calls)} calls, ` +
      `${sum(({ writes }) => writes)} writes, ${sum(({ staleWrites }) => staleWrites)} stale writes refused`,
    `faults: ${[...faults].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`,
  ].join('\n');
}
