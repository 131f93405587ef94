/**
 * Many hours of simulation, of every kind there is, until enough are together: dense runs in which rare things meet, short ones of many
 * seeds and longer ones of few; and sparse runs over a working day, which make most of the hours. What an hour holds is said with the sum.
 */
import { makePlan } from './plan.ts';
import type { RunReport } from './run.ts';
import { hoursOf, processorMs, told } from './seeds.ts';
import { type Run, simulateMany } from './threads.ts';
import { World } from './world/world.ts';

type Kind = Required<Omit<Run, 'seed'>>;

const DAY: Kind = { hours: 12, pace: 'sparse' };
/** Replicas that follow cost several times what a single server does: each run is to take about the same effort. */
const GROUP_SHARE = 0.25;
const HOUR: Kind = { hours: 1, pace: 'dense' };
const MOMENT: Kind = { hours: 0.05, pace: 'dense' };
/** Taken in turn. The dense ones take about as long as the others. */
const KINDS: readonly Kind[] = [
  ...[MOMENT, MOMENT, DAY, MOMENT, MOMENT, DAY, MOMENT, MOMENT, DAY],
  ...[MOMENT, MOMENT, DAY, MOMENT, MOMENT, DAY, MOMENT, MOMENT, DAY, HOUR],
];
const PROGRESS_EVERY_MS = 20_000;

interface ManyHours {
  readonly first: number;
  readonly hours: number;
  readonly threads: number;
  readonly print: (line: string) => void;
}

export async function simulateHours({
  first,
  hours,
  threads,
  print,
}: ManyHours): Promise<readonly RunReport[]> {
  const began = { wallMs: performance.now(), processorMs: processorMs() };
  const reports: RunReport[] = [];
  let [begunHours, begun, printedMs] = [0, 0, began.wallMs];
  const next = (): Run | null => {
    if (begunHours >= hours) return null;
    const seed = first + begun;
    const { pace, hours: hoursOfOne } = KINDS[begun++ % KINDS.length] as Kind;
    const isDay = pace === 'sparse';
    const run = { seed, pace, hours: hoursOfOne * (isDay && hasReplicas(seed) ? GROUP_SHARE : 1) };
    begunHours += run.hours;
    return run;
  };
  const took = () => ({
    wallMs: performance.now() - began.wallMs,
    processorMs: processorMs() - began.processorMs,
  });
  const onReport = (report: RunReport): void => {
    reports.push(report);
    if (report.findings.length > 0) print(told(report));
    if (performance.now() - printedMs < PROGRESS_EVERY_MS) return;
    printedMs = performance.now();
    print(progress(reports, took()));
  };
  await simulateMany({ threads, next, onReport });
  for (const pace of ['dense', 'sparse'] as const) {
    for (const isGroup of [false, true]) {
      const part = reports.filter(({ plan, ...run }) => run.pace === pace && plan.replicas > 1 === isGroup);
      print(`${pace}, ${isGroup ? 'groups of several' : 'single servers'}: ${contents(part)}`);
    }
  }
  print(progress(reports, took()));
  return reports.sort((a, b) => a.seed - b.seed);
}

function hasReplicas(seed: number): boolean {
  return makePlan(new World(seed)).replicas > 1;
}

interface Took {
  readonly wallMs: number;
  readonly processorMs: number;
}

/** How far it has come: also the last line, with the sum. */
function progress(reports: readonly RunReport[], { wallMs, processorMs: cpuMs }: Took): string {
  const hours = hoursOf(reports);
  const perMinute = (ms: number): string => ((hours / ms) * 60_000).toFixed(1);
  const found = reports.filter(({ findings }) => findings.length > 0).length;
  return (
    `${hours.toFixed(1)} virtual hours in ${reports.length} runs, ${perMinute(wallMs)} a minute, ` +
    `${perMinute(cpuMs)} a minute of one core; ${totals(reports)}; ${found} runs with findings`
  );
}

function contents(reports: readonly RunReport[]): string {
  const hours = hoursOf(reports);
  if (hours === 0) return 'none';
  const each = sums(reports).map(([what, sum]) => `${(sum / hours).toFixed(0)} ${what}`);
  return `${hours.toFixed(1)} hours, each with ${each.join(', ')}`;
}

function totals(reports: readonly RunReport[]): string {
  return sums(reports)
    .map(([what, sum]) => `${sum} ${what}`)
    .join(', ');
}

function sums(reports: readonly RunReport[]): readonly (readonly [string, number])[] {
  const sum = (count: (report: RunReport) => number): number =>
    reports.reduce((all, report) => all + count(report), 0);
  return [
    ['calls', sum(({ calls }) => calls)],
    ['grants', sum(({ grants }) => grants)],
    ['faults', sum(({ faults }) => [...faults.values()].reduce((all, count) => all + count, 0))],
    ['changes of leader', sum(({ takeOvers }) => takeOvers)],
  ];
}
