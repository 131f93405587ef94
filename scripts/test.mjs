// `npm test`, the long tests of `npm run test:long` (`--long`) and the suites of .ci/run (`--fencing`,
// `--old-etcd`, `--soak`): runs vitest, then
// says what was not run and why, names each failed test once more, and closes with the line `N passed, N failed` that .ci/run adds up.
// Further arguments go to vitest (`npm test -- src/core`).
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { ensureEtcd } from './etcd.mjs';
import { ROOT, run } from './processes.mjs';
import { SUITES_NOT_IN_NPM_TEST } from './suites.mjs';

/** What vitest.config.ts looks at. @type {Readonly<Record<string, Record<string, string>>>} */
const OTHER_SUITES = {
  '--long': { LEASEHOLD_LONG: '1' },
  '--fencing': { LEASEHOLD_FENCING: '1' },
  '--old-etcd': { LEASEHOLD_SUITE_OLD_ETCD: '1' },
  '--soak': { LEASEHOLD_SUITE_SOAK: '1', LEASEHOLD_SOAK_MS: '45000' },
};

const REASON_LENGTH_MAX = 300;

/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} TestResult */
/** @typedef {{ name: string, status: string, message?: string, assertionResults: TestResult[] }} FileResult */

/**
 * @param {string} reportFile vitest's JSON report
 * @param {number} code vitest's exit code
 * @returns {{ passed: number, failed: number }} a run that ended badly never counts as without failure
 */
export function countTests(reportFile, code) {
  if (!existsSync(reportFile)) return { passed: 0, failed: 1 };
  const report = JSON.parse(readFileSync(reportFile, 'utf8'));
  const passed = Number(report.numPassedTests);
  /** @type {{ testResults?: FileResult[] }} */
  const { testResults = [] } = report;
  const failed = Number(report.numFailedTests) + testResults.filter(isFailedAsWhole).length;
  return { passed, failed: failed === 0 && (code !== 0 || passed === 0) ? 1 : failed };
}

/**
 * A line for each failed test (or file that could not be loaded): a log of thousands of lines is read from its end.
 * @param {string} reportFile vitest's JSON report
 * @returns {string[]}
 */
export function failures(reportFile) {
  if (!existsSync(reportFile)) return ['FAILED vitest: it wrote no report'];
  const lines = [];
  /** @type {{ testResults?: FileResult[] }} */
  const { testResults = [] } = JSON.parse(readFileSync(reportFile, 'utf8'));
  for (const file of testResults) {
    const where = relative(ROOT, file.name);
    const failed = file.assertionResults.filter(({ status }) => status === 'failed');
    for (const test of failed) lines.push(failure(`${where}: ${test.fullName}`, test.failureMessages?.[0]));
    if (isFailedAsWhole(file)) lines.push(failure(where, file.message));
  }
  return lines;
}

/** It could not be loaded, or what its tests need could not be set up: none of them counts. @param {FileResult} file */
function isFailedAsWhole({ status, assertionResults }) {
  return status === 'failed' && !assertionResults.some((test) => test.status === 'failed');
}

/** @param {string} what @param {string | undefined} message */
function failure(what, message = '') {
  const [first = ''] = stripVTControlCharacters(message).trim().split('\n');
  return `FAILED ${what}: ${first.slice(0, REASON_LENGTH_MAX)}`;
}

async function main() {
  const suite = process.argv.find((arg) => arg in OTHER_SUITES);
  const vitestArgs = process.argv.slice(2).filter((arg) => arg !== suite);
  const reportFolder = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  try {
    const reportFile = join(reportFolder, 'report.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const env = suite === undefined ? {} : (OTHER_SUITES[suite] ?? {});
    // Before the tests and not in one: building it takes longer than a test may. Where it cannot be built the tests that need it say so.
    if (suite !== undefined || vitestArgs.length === 0) {
      await ensureEtcd().catch((error) => console.error(String(error)));
    }
    const { code } = await run('vitest', ['run', ...reporters, ...vitestArgs], { env });
    const { passed, failed } = countTests(reportFile, code);
    if (suite === undefined) {
      for (const { name, folder, reason } of SUITES_NOT_IN_NPM_TEST) {
        if (existsSync(join(ROOT, folder))) console.log(`not run: ${name} (${reason})`);
      }
    }
    if (failed > 0) for (const line of failures(reportFile)) console.log(line);
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  } finally {
    rmSync(reportFolder, { recursive: true, force: true });
  }
}

if (import.meta.main) await main();
