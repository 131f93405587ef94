// The suites that `npm test` does not run, with who runs them. `npm test` lists them at its end, so that a green
// run never hides what it did not look at. `folder`: the suite exists once this folder does.

/** @type {ReadonlyArray<{ name: string, folder: string, reason: string }>} */
export const SUITES_NOT_IN_NPM_TEST = [
  {
    name: 'fencing tests',
    folder: 'test/fencing',
    reason:
      'need PostgreSQL and Go; run by .ci/run, which installs PostgreSQL; node scripts/test.mjs --fencing',
  },
  {
    name: 'etcd 3.4 as an adversary',
    folder: 'test/old-etcd',
    reason: "needs Debian's etcd-server; run by .ci/run, which installs it; node scripts/test.mjs --old-etcd",
  },
  {
    name: 'long tests',
    folder: 'test/long',
    reason: 'take minutes; 45 s of a group in .ci/run; npm run test:long',
  },
  {
    name: 'fault injection',
    folder: 'test/chaos',
    reason: 'takes minutes, and root for two of its faults; run by .ci/run; npm run chaos',
  },
];
