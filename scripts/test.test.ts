import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { countTests } from './test.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-count-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  { what: 'all passed', report: { numPassedTests: 3, numFailedTests: 0 }, code: 0, passed: 3, failed: 0 },
  { what: 'some failed', report: { numPassedTests: 3, numFailedTests: 2 }, code: 1, passed: 3, failed: 2 },
  {
    what: 'a file that did not load',
    report: { numPassedTests: 3, numFailedTests: 0 },
    code: 1,
    passed: 3,
    failed: 1,
  },
  { what: 'no test at all', report: { numPassedTests: 0, numFailedTests: 0 }, code: 0, passed: 0, failed: 1 },
  { what: 'no report', report: null, code: 1, passed: 0, failed: 1 },
])('counts a run honestly: $what', ({ report, code, passed, failed }) => {
  const file = join(folder, 'report.json');
  if (report !== null) writeFileSync(file, JSON.stringify(report));
  expect(countTests(file, code)).toEqual({ passed, failed });
});
