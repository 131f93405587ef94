/**
 * The nightly payout job. It takes the lock, pays what is pending batch by batch, and gives the lock back. It is written
 * carefully (it renews in time, it looks at its deadline before each batch), because the point of the demo is that care
 * is not enough: the process can stand still between its last look and its write.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Lock, Refusal } from './lock.ts';
import { LOCK_NAME, type PayOutcome, PayoutTable } from './payouts.ts';
import { EXIT_LOST, type RunnerEvent } from './runner-events.ts';

/** The shortest lease the sample manifest allows, so that the demo is soon over. */
const TTL_SECONDS = 5;
const WAIT_MS_MAX = 30_000;
/** What the job does for each batch between reading and writing it (here: nothing, for so long). */
const WORK_MS = 70;
/** Leaves the demo time to stop this process while it works on the slow batch. */
const SLOW_WORK_MS = 3_000;

interface Job {
  readonly runner: string;
  readonly lock: Lock;
  readonly table: PayoutTable;
  readonly isFenced: boolean;
  readonly slowBatch: string | undefined;
}

function tell(event: RunnerEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

/** Asks once, to see who is there, then waits in the queue. */
async function acquire(lock: Lock): Promise<number> {
  try {
    return await lock.acquire(0);
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'HELD')) throw error;
    tell({ event: 'waiting', holder: error.holder?.owner ?? 'nobody yet' });
    return lock.acquire(WAIT_MS_MAX);
  }
}

/** The table refused us: say so to Leasehold, and see what has become of the lock. */
async function refused({ lock, table }: Job, batch: string, token: number): Promise<void> {
  tell({ event: 'refused', batch, token, fence: table.fence });
  await lock.reportStale('payout_batches');
  const answer = await lock.release();
  const holder = await lock.holder();
  tell({ event: 'reported', token, answer, holder: holder?.owner ?? 'nobody' });
}

function pay(job: Job, batch: string, token: number): PayOutcome {
  const { runner, table, isFenced } = job;
  return isFenced ? table.pay({ batch, runner, token }) : table.payUnfenced({ batch, runner, token });
}

async function payAll(job: Job, token: number): Promise<number> {
  const { lock, table, isFenced, slowBatch } = job;
  // Before the first read: what is read below can then no longer be changed by an older holder.
  let isOurs = !isFenced || table.raiseFence(token);
  if (isOurs && isFenced) tell({ event: 'fenceRaised', token });
  for (let paidSoFar = 0; ; ) {
    isOurs &&= lock.isHeld;
    if (!isOurs) {
      tell({ event: 'lost', token, paidSoFar });
      return EXIT_LOST;
    }
    const batch = table.nextPending();
    if (batch === null) {
      tell({ event: 'done', token, paidSoFar });
      return 0;
    }
    const isSlow = batch.id === slowBatch;
    if (isSlow) tell({ event: 'inHand', batch: batch.id, token, paidSoFar });
    await sleep(isSlow ? SLOW_WORK_MS : WORK_MS);
    const outcome = pay(job, batch.id, token);
    if (outcome === 'fenced') {
      await refused(job, batch.id, token);
      return EXIT_LOST;
    }
    if (outcome === 'paid') {
      paidSoFar++;
      tell({ event: 'paid', batch: batch.id, token });
    }
  }
}

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: '?' },
    url: { type: 'string', default: '' },
    database: { type: 'string', default: '' },
    'slow-batch': { type: 'string' },
    'without-fence': { type: 'boolean', default: false },
  },
});
const runner = values.name;
const lock = await Lock.open({
  url: values.url,
  name: LOCK_NAME,
  client: `runner ${runner}`,
  ttlSeconds: TTL_SECONDS,
});
const table = new PayoutTable(values.database);
try {
  const isFenced = !values['without-fence'];
  const token = await acquire(lock);
  tell({ event: 'granted', token });
  process.exitCode = await payAll({ runner, lock, table, isFenced, slowBatch: values['slow-batch'] }, token);
} finally {
  table.close();
  await lock.close();
}
