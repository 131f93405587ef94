// `npm test` and `npm run test:long`: runs vitest, then says what was not run and why, and closes with the line
// `N passed, N failed` that .ci/run adds up. Further arguments go to vitest (`npm test -- src/core`).
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, run } from './processes.mjs';
import { SUITES_NOT_IN_NPM_TEST } from './suites.mjs';

/**
 * @param {string} reportFile vitest's JSON report
 * @param {number} code vitest's exit code
 * @returns {{ passed: number, failed: number }} a run that ended badly never counts as without failure
 */
export function countTests(reportFile, code) {
  if (!existsSync(reportFile)) return { passed: 0, failed: 1 };
  const report = JSON.parse(readFileSync(reportFile, 'utf8'));
  const passed = Number(report.numPassedTests);
  const failed = Number(report.numFailedTests);
  return { passed, failed: failed === 0 && (code !== 0 || passed === 0) ? 1 : failed };
}

async function main() {
  const long = process.argv.includes('--long');
  const vitestArgs = process.argv.slice(2).filter((arg) => arg !== '--long');
  const reportFolder = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  try {
    const reportFile = join(reportFolder, 'report.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
    const env = long ? { LEASEHOLD_LONG: '1' } : {};
    const { code } = await run('vitest', ['run', ...reporters, ...vitestArgs], { env });
    const { passed, failed } = countTests(reportFile, code);
    if (!long) {
      for (const suite of SUITES_NOT_IN_NPM_TEST) {
        if (existsSync(join(ROOT, suite.folder))) console.log(`not run: ${suite.name} (${suite.reason})`);
      }
    }
    console.log(`${passed} passed, ${failed} failed`);
    process.exitCode = failed === 0 ? 0 : 1;
  } finally {
    rmSync(reportFolder, { recursive: true, force: true });
  }
}

if (import.meta.main) await main();
