import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ROOT } from './processes.mjs';
import { countTests, failures } from './test.mjs';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-count-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it.each([
  { what: 'all passed', report: { numPassedTests: 3, numFailedTests: 0 }, code: 0, passed: 3, failed: 0 },
  { what: 'some failed', report: { numPassedTests: 3, numFailedTests: 2 }, code: 1, passed: 3, failed: 2 },
  {
    what: 'a test, and a file whose tests could not be set up',
    report: {
      numPassedTests: 3,
      numFailedTests: 1,
      testResults: [
        { status: 'failed', assertionResults: [{ status: 'failed' }, { status: 'passed' }] },
        { status: 'failed', assertionResults: [{ status: 'skipped' }] },
        { status: 'passed', assertionResults: [{ status: 'passed' }] },
      ],
    },
    code: 1,
    passed: 3,
    failed: 2,
  },
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

it('names each failed test with the first line of its reason', () => {
  const file = join(folder, 'report.json');
  const of = (name: string) => join(ROOT, 'src', name);
  const assertionResults = [
    { status: 'passed', fullName: 'a wait ends' },
    {
      status: 'failed',
      fullName: 'a lock is freed',
      failureMessages: ['\u001b[31mError: held\u001b[39m\n    at line 3'],
    },
  ];
  const testResults = [
    { name: of('a.test.ts'), status: 'failed', message: '', assertionResults },
    { name: of('b.test.ts'), status: 'failed', message: 'SyntaxError: no such export', assertionResults: [] },
    { name: of('c.test.ts'), status: 'passed', message: '', assertionResults: [] },
  ];
  writeFileSync(file, JSON.stringify({ testResults }));
  expect(failures(file)).toEqual([
    'FAILED src/a.test.ts: a lock is freed: Error: held',
    'FAILED src/b.test.ts: SyntaxError: no such export',
  ]);
  expect(failures(join(folder, 'none.json'))).toEqual(['FAILED vitest: it wrote no report']);
});
