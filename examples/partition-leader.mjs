// One of several workers leads a partition: it holds the lock for as long as it lives, and does work that must have one
// writer. SIGTERM hands over at once; a worker that dies is replaced when its lease has ended at the latest.
// Usage: node partition-leader.mjs orders-7 ledger.ndjson
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient, HeldError, LeaseholdError, LockLostError } from 'leasehold';

const [partition = 'orders-7', ledger = 'ledger.ndjson'] = process.argv.slice(2);
/** No longer than the namespace's maxWait, which is ten minutes by default; then it queues again. */
const WAIT_MS = 5 * 60_000;

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());

/** The last line of the ledger: where the leader before us got to. */
function lastEntry() {
  const lines = existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : [];
  const last = lines.at(-1);
  return last ? JSON.parse(last) : { number: 0, token: 0 };
}

/** Leads until the lock is lost or this process is to stop; the entry at hand is finished in both cases. */
async function lead({ token, signal, held }) {
  console.log(`leading under token ${token}`);
  const stop = AbortSignal.any([signal, stopping.signal]);
  let { number } = lastEntry();
  while (!stop.aborted && held()) {
    // The fence: whoever came later has written a higher token. A database checks this in the same transaction.
    if (lastEntry().token > token) throw new Error('a newer leader has written already');
    number += 1;
    appendFileSync(ledger, `${JSON.stringify({ number, token, pid: process.pid })}\n`);
    await pause(50, undefined, { signal: stop }).catch(() => undefined);
  }
}

const client = createClient({ client: `worker-${process.pid}` });
try {
  while (!stopping.signal.aborted) {
    try {
      await client.withLock(`jobs/${partition}`, { waitMs: WAIT_MS, signal: stopping.signal }, lead);
    } catch (error) {
      if (stopping.signal.aborted) break;
      if (error instanceof LockLostError) console.log(`not leading any more: ${error.message}`);
      // Somebody else has led all the while: queue again at once.
      else if (error instanceof HeldError) continue;
      // The queue is full, or the service is down: the locks' own waiting has done its part, so come back later.
      else if (error instanceof LeaseholdError && error.retryable) await pause(1_000 + 4_000 * Math.random());
      else throw error;
    }
  }
  console.log('stopped');
} finally {
  await client.close();
}
