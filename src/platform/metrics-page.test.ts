/** docs/METRICS.md against the program: every metric is in its table, with its type, labels and help text, and no other is. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createMetrics } from './prometheus.ts';

interface Row {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly meaning: string;
}

/** Every metric with at least one sample, so that its labels show. */
async function exported(): Promise<readonly Row[]> {
  const metrics = createMetrics();
  metrics.http.answered({ route: '/', status: 200, outcome: 'OK', durationMs: 1 });
  metrics.http.streamsChanged(1);
  const sidecar = metrics.sidecar('n');
  sidecar.acquired('granted', 1);
  sidecar.jeopardy();
  sidecar.lost();
  sidecar.leaseExpiredWhileWorking();
  sidecar.observe(() => ({ sessions: 1, grants: 1, waits: 1 }));
  const server = metrics.server('n');
  server.granted(1);
  server.held(1);
  server.refused('HELD');
  server.sessionExpired('expired');
  server.fencingRejected();
  server.committed(1, 1);
  server.stalled(1);
  server.leaderChanged();
  server.markShown('matched');
  server.halted();
  const gauges = { sessions: 1, heldLocks: 1, waiters: 1, longestQueue: 1, logBytes: 1, snapshotBytes: 1 };
  server.observe(() => gauges);
  server.observeSpace(() => ({ quotaBytes: 1, usedBytes: 1, fileBytes: 1, isRefusing: false, corrupt: 0 }));
  const audit = metrics.audit('n');
  audit.exported(1);
  audit.failed();
  audit.gap(1);
  audit.observe(() => ({ lagEntries: 1, lagMs: 1 }));
  return readText(await metrics.text());
}

function readText(text: string): readonly Row[] {
  const lines = text.split('\n');
  return lines
    .filter((line) => line.startsWith('# HELP '))
    .map((line) => {
      const [, name = '', meaning = ''] = /^# HELP (\S+) (.*)$/.exec(line) ?? [];
      const type = lines.find((other) => other.startsWith(`# TYPE ${name} `))?.split(' ')[3] ?? '';
      const suffix = type === 'histogram' ? '_count' : '';
      const sample = lines.find((other) => new RegExp(`^${name}${suffix}[ {]`).test(other));
      expect(sample, `${name} has no sample: use it in exported()`).toBeDefined();
      return {
        name,
        type,
        labels: [...(sample ?? '').matchAll(/(\w+)="/g)].map(([, label = '']) => label),
        meaning,
      };
    });
}

const CELLS = /^\| `(leasehold_\w+)` \| (\w+) \| (.*?) \| (\w+) \| (.*?) \| (.+?) \|$/gm;
const page = readFileSync(new URL('../../docs/METRICS.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(CELLS)].map(
  ([, name = '', type = '', labels = '', unit = '', meaning = '']) => ({
    name,
    type,
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label),
    unit,
    meaning,
  }),
);

const byName = (one: Row, other: Row) => one.name.localeCompare(other.name);

it('the table of docs/METRICS.md is what the program exports', async () => {
  const documented = rows.map(({ unit: _, ...row }) => row).toSorted(byName);
  expect(documented).toEqual((await exported()).toSorted(byName));
});

it('units stand in the names', () => {
  for (const { name, unit } of rows) {
    const suffix = /_(seconds|bytes)$/.exec(name)?.[1];
    if (suffix !== undefined) expect(unit, name).toBe(suffix);
  }
  expect(rows.length).toBeGreaterThan(20);
});

it('no label can hold the name of a lock', async () => {
  const labels = new Set((await exported()).flatMap((row) => row.labels));
  expect([...labels].toSorted()).toEqual(['cause', 'code', 'namespace', 'outcome', 'route', 'status']);
});

it('every metric that the page speaks of exists', () => {
  const names = new Set(rows.map(({ name }) => name));
  for (const [mentioned] of page.matchAll(/leasehold_\w+/g)) {
    expect(names, mentioned).toContain(mentioned.replace(/_(count|sum|bucket)$/, ''));
  }
});
