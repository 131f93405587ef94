// A job that several machines start at the same minute, and late runs start again: the report of a day is made once.
// Usage: node cron-job.mjs report-2026-05-01.txt
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, HeldError } from 'leasehold';

const [file = 'report.txt'] = process.argv.slice(2);

/** Half a second of work; `signal` ends it early. */
async function makeReport(signal) {
  await pause(500, undefined, { signal });
  return 'orders: 4211\n';
}

const client = createClient({ client: `nightly-report-${process.pid}` });
try {
  await client.withLock(
    'jobs/nightly-report',
    { purpose: `make ${file}` },
    async ({ token, signal, held }) => {
      // The lock keeps two runs from overlapping. That the work is done already, only its result can say.
      if (existsSync(file)) {
        console.log('made already');
        return;
      }
      const report = await makeReport(signal);
      // Whole or not at all, and under a name that no other run uses.
      writeFileSync(`${file}.${token}`, report);
      if (!held()) throw new Error('too late: somebody else may be at it by now');
      renameSync(`${file}.${token}`, file);
      console.log(`made under token ${token}`);
    },
  );
} catch (error) {
  if (!(error instanceof HeldError)) throw error;
  console.log('skipped: another machine is making it');
} finally {
  await client.close();
}
