/** Running seeds for people: what was found, how to repeat it, and what led to it. */
import { availableParallelism } from 'node:os';
import type { Pace } from './plan-pace.ts';
import type { RunReport } from './run.ts';
import { simulate } from './simulation.ts';
import { type Run, simulateMany } from './threads.ts';

/** Lines shown before a finding. */
const LINES_BEFORE = 120;

/** One line: the finding and the command that repeats it. */
export function told({ seed, hours, pace, findings }: RunReport): string {
  const [first] = findings;
  if (first === undefined) return `seed ${seed}: nothing found`;
  const command = `npm run sim -- --seed ${seed} --hours ${hours}${pace === 'sparse' ? ' --sparse' : ''}`;
  return `seed ${seed}: ${first.property} at ${first.atMs} ms: ${first.message}\n  to repeat: ${command}`;
}

/** Runs one seed with its story. False: something was found. */
export async function showSeed(options: {
  readonly seed: number;
  readonly hours: number;
  readonly pace: Pace;
  readonly isVerbose: boolean;
}): Promise<boolean> {
  const { isVerbose, ...run } = options;
  const lines: string[] = [];
  const onTrace = (nowMs: number, text: string): void => {
    const line = `${nowMs.toFixed(3).padStart(14)} ${text}`;
    if (isVerbose) console.log(line);
    else if (lines.push(line) > 2 * LINES_BEFORE) lines.splice(0, LINES_BEFORE);
  };
  const report = await simulate({ ...run, onTrace });
  if (report.findings.length > 0) {
    for (const line of lines.slice(-LINES_BEFORE)) console.log(line);
    const { faults, ...plan } = report.plan;
    console.log(`plan: ${JSON.stringify({ ...plan, faults: Object.fromEntries(faults) })}`);
  }
  console.log(told(report));
  console.log(summary([report]));
  return report.findings.length === 0;
}

/** On all cores. False: something was found. */
export async function runSeeds(options: {
  readonly first: number;
  readonly count: number;
  readonly hours: number;
  readonly pace: Pace;
}): Promise<boolean> {
  const { first, count, hours, pace } = options;
  const [startedMs, processorStartedMs] = [performance.now(), processorMs()];
  const reports: RunReport[] = [];
  await simulateMany({
    threads: availableParallelism(),
    next: seedsFrom(first, { hours, pace }, (begun) => begun < count),
    onReport: (report) => {
      reports.push(report);
      if (report.findings.length > 0) console.log(told(report));
    },
  });
  const found = reports.filter(({ findings }) => findings.length > 0).length;
  console.log(summary(reports));
  const took = {
    processorMs: processorMs() - processorStartedMs,
    wallMs: performance.now() - startedMs,
  };
  console.log(`${speed(reports, took)}; ${count - found} of ${count} seeds found nothing`);
  return found === 0;
}

/** Seeds from `first` on, for so long, but at least so many. The reports are in order of their seeds. */
export async function runUntil(options: {
  readonly first: number;
  readonly hours: number;
  readonly forMs: number;
  readonly countMin: number;
  readonly threads: number;
}): Promise<readonly RunReport[]> {
  const { first, hours, forMs, countMin, threads } = options;
  const untilMs = performance.now() + forMs;
  const reports: RunReport[] = [];
  await simulateMany({
    threads,
    next: seedsFrom(first, { hours }, (begun) => begun < countMin || performance.now() < untilMs),
    onReport: (report) => void reports.push(report),
  });
  return reports.sort((a, b) => a.seed - b.seed);
}

/** One seed after the other, as long as one more is wanted when so many have begun. */
function seedsFrom(
  first: number,
  run: Omit<Run, 'seed'>,
  isWanted: (begun: number) => boolean,
): () => Run | null {
  let begun = 0;
  return () => (isWanted(begun) ? { ...run, seed: first + begun++ } : null);
}

/** Processor time of all threads so far: what runs cost, however busy the machine is. */
export function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** With traffic and faults: the quiet at the end of a run does not count. */
export function hoursOf(reports: readonly Pick<RunReport, 'busyMs'>[]): number {
  return reports.reduce((all, { busyMs }) => all + busyMs, 0) / 3_600_000;
}

function speed(
  reports: readonly RunReport[],
  took: { readonly processorMs: number; readonly wallMs: number },
): string {
  const perMinute = (ms: number): string => ((hoursOf(reports) / ms) * 60_000).toFixed(1);
  return (
    `${(took.processorMs / 1_000).toFixed(1)} s of one core, ${perMinute(took.processorMs)} virtual hours a minute; ` +
    `${(took.wallMs / 1_000).toFixed(1)} s by the clock, ${perMinute(took.wallMs)} virtual hours a minute`
  );
}

export function summary(reports: readonly RunReport[]): string {
  const sum = (count: (report: RunReport) => number): number =>
    reports.reduce((all, report) => all + count(report), 0);
  const faults = new Map<string, number>();
  for (const report of reports) {
    for (const [kind, count] of report.faults) faults.set(kind, (faults.get(kind) ?? 0) + count);
  }
  return (
    `${hoursOf(reports).toFixed(1)} virtual hours, ${sum(({ steps }) => steps)} steps: ` +
    `${sum(({ grants }) => grants)} grants (${sum(({ tally }) => tally.shared)} shared, ` +
    `${sum(({ tally }) => tally.semaphore)} semaphore, ${sum(({ tally }) => tally.joined)} joined, ` +
    `${sum(({ tally }) => tally.partlyReleased)} partly released, ${sum(({ tally }) => tally.permitsCut)} cut), ${sum(({ sessions }) => sessions)} sessions, ` +
    `${sum(({ entries }) => entries)} entries (${sum(({ carriedOver }) => carriedOver)} left something to the next), ${sum(({ takeOvers }) => takeOvers)} take-overs, ` +
    `${sum(({ calls }) => calls)} calls, ${sum(({ writes }) => writes)} writes and ` +
    `${sum(({ staleWrites }) => staleWrites)} refused as stale; ` +
    `faults: ${[...faults].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`
  );
}
