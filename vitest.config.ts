// Which tests `npm test` and `npm run test:long` run, and their time limits.
// Tests that need a server from elsewhere (test/fencing) run with `--fencing`; a run of test/chaos is no suite of vitest:
// scripts/suites.mjs says who runs what.
import { defineConfig } from 'vitest/config';

const TEST_TIMEOUT_MS = 30_000;
const LONG_TEST_TIMEOUT_MS = 20 * 60_000;

const long = process.env.LEASEHOLD_LONG === '1';
const fencing = process.env.LEASEHOLD_FENCING === '1';
const oldEtcd = process.env.LEASEHOLD_SUITE_OLD_ETCD === '1';
/** A slice of the long run of a group. */
const soak = process.env.LEASEHOLD_SUITE_SOAK === '1';

function include(): string[] {
  if (oldEtcd) return ['test/old-etcd/**/*.test.ts'];
  if (soak) return ['test/long/group-soak.test.ts'];
  if (fencing) return ['test/fencing/**/*.test.ts'];
  if (long) return ['test/long/**/*.test.ts', 'test/sim/**/*.test.ts'];
  return ['{src,test,scripts,bench,demo}/**/*.test.ts'];
}

function exclude(): string[] {
  const always = ['node_modules/**', 'dist/**'];
  return [
    ...always,
    ...(long || soak ? [] : ['test/long/**']),
    ...(fencing ? [] : ['test/fencing/**']),
    ...(oldEtcd ? [] : ['test/old-etcd/**']),
  ];
}

export default defineConfig({
  test: {
    include: include(),
    exclude: exclude(),
    pool: 'forks',
    testTimeout: long || soak ? LONG_TEST_TIMEOUT_MS : TEST_TIMEOUT_MS,
    hookTimeout: TEST_TIMEOUT_MS,
    teardownTimeout: 10_000,
    allowOnly: false,
    expect: { requireAssertions: true },
    restoreMocks: true,
  },
});
