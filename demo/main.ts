/**
 * `npm run demo`: one nightly payout job, started twice. The runner that holds the lock is stopped for longer than its
 * lease, the other takes over, and the first wakes up in the middle of a payment. No lock service can prevent that;
 * the table can, because every grant carries a higher token. `--without-fence` shows the same without that check.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Check, check, money } from './checks.ts';
import { type Runner, Stage, StageError } from './children.ts';
import { type Batch, LOCK_NAME, PAY_FENCED, PAY_UNFENCED, PayoutTable, readBatches } from './payouts.ts';
import { EXIT_LOST, type RunnerEvent } from './runner-events.ts';

const CSV_FILE = new URL('payout-batches.csv', import.meta.url);
/** A is stopped while it has this batch in hand. */
const SLOW_BATCH = 'PB-07314';
/** So many batches B pays before A is resumed: the one A has in hand, and not yet all that are left. */
const PAID_BY_B_BEFORE_RESUME = 5;
const DEMO_MS_MAX = 60_000;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type EndSignal = keyof typeof EXIT_CODES;

/** Ended from outside; what was started is cleaned up all the same. */
class Interrupted extends Error {
  readonly signal: EndSignal;
  constructor(signal: EndSignal) {
    super(`ended by ${signal}`);
    this.signal = signal;
  }
}

interface Facts {
  grants: number;
  isResumed: boolean;
  /** What A tried to pay after it was resumed. */
  lateBatch: string | null;
  readonly batches: readonly Batch[];
}

function row(who: string, what: string, token?: number): void {
  const seconds = (performance.now() / 1_000).toFixed(1).padStart(6);
  console.log(`${seconds} s  ${who.padEnd(6)}  ${String(token ?? '').padEnd(16)}  ${what}`);
}

function header(isFenced: boolean, batches: readonly Batch[]): void {
  const merchants = new Set(batches.map(({ merchant }) => merchant)).size;
  const statement = (isFenced ? PAY_FENCED : PAY_UNFENCED).replace(' WHERE', '\n    WHERE');
  console.log(`One nightly payout job, started twice: ${batches.length} batches for ${merchants} merchants.`);
  console.log(
    isFenced
      ? 'Each payment is a transaction that first compares its token with the fence of the table, then runs'
      : 'WITHOUT FENCE: each payment trusts the lock and runs',
  );
  console.log(`    ${statement}\n`);
  console.log(`    time  who     token             event`);
}

/** One line for each event worth telling; a payment is told only where it matters. */
function narrate(who: string, event: RunnerEvent, facts: Facts): void {
  const say = (what: string, token?: number): void => row(who, what, token);
  switch (event.event) {
    case 'waiting':
      return say(`told HELD by ${event.holder}; waits in the queue`);
    case 'granted':
      facts.grants++;
      return say(
        `granted ${LOCK_NAME}${facts.grants === 1 ? '' : ": the other runner's lease is over"}`,
        event.token,
      );
    case 'inHand':
      return say(
        `has paid ${event.paidSoFar}; reads ${nameOf(event.batch, facts)} as pending ...`,
        event.token,
      );
    case 'paid':
      if (who === 'A' && facts.isResumed) {
        facts.lateBatch = event.batch;
        return say(`writes ${event.batch}: PAID AGAIN, nothing refused the old token`, event.token);
      }
      return event.batch === SLOW_BATCH ? say(`pays ${nameOf(event.batch, facts)}`, event.token) : undefined;
    case 'refused':
      facts.lateBatch = event.batch;
      return say(
        `writes ${event.batch}: REFUSED, 0 rows changed, the fence is at ${event.fence}`,
        event.token,
      );
    case 'reported':
      return say(`reports it; Leasehold says ${event.answer}, now held by ${event.holder}`, event.token);
    case 'lost':
      return say('its lease is over by its own clock; it stops', event.token);
    case 'done':
      return say(
        `nothing is pending any more; has paid ${event.paidSoFar} and gives the lock back`,
        event.token,
      );
  }
}

function nameOf(id: string, { batches }: Facts): string {
  const batch = batches.find((candidate) => candidate.id === id);
  return batch === undefined ? id : `${id} (${money(batch)})`;
}

async function story(stage: Stage, isFenced: boolean): Promise<readonly Check[]> {
  const facts: Facts = { grants: 0, isResumed: false, lateBatch: null, batches: readBatches(CSV_FILE) };
  header(isFenced, facts.batches);
  const database = join(stage.folder, 'payouts.sqlite');
  const table = PayoutTable.create(database, facts.batches);
  try {
    const { url, pid, manifest } = await stage.startLeasehold();
    row('', `leasehold dev serves ${manifest} on ${url} (pid ${pid})`);
    const start = (name: string, slowBatch?: string): Runner => {
      const onEvent = (event: RunnerEvent): void => narrate(name, event, facts);
      const slow = slowBatch === undefined ? {} : { slowBatch };
      const runner = stage.startRunner({ name, url, database, isFenced, onEvent, ...slow });
      row(name, `starts (pid ${runner.pid})`);
      return runner;
    };
    await perform(start, facts);
    return check({ table, batches: facts.batches, lateBatch: facts.lateBatch });
  } finally {
    table.close();
  }
}

async function perform(start: (name: string, slowBatch?: string) => Runner, facts: Facts): Promise<void> {
  const a = start('A', SLOW_BATCH);
  const isInHand = a.next('inHand');
  await a.next('granted');
  const b = start('B');
  const isGranted = b.next('granted');
  const hasPaid = b.next('paid', PAID_BY_B_BEFORE_RESUME);
  await isInHand;
  a.signal('SIGSTOP');
  row('A', '... and is STOPPED (SIGSTOP) before it writes: no keepalives any more');
  await isGranted;
  await hasPaid;
  facts.isResumed = true;
  row('A', 'is RESUMED (SIGCONT) and goes on as if no time had passed');
  a.signal('SIGCONT');
  await a.endsWith(EXIT_LOST);
  await b.endsWith(0);
}

function verdict(checks: readonly Check[], isFenced: boolean): number {
  console.log('\nChecks, read from the database:');
  for (const { name, isOk, found } of checks) {
    console.log(`  ${isOk ? 'ok    ' : 'FAILED'}  ${name} (${found})`);
  }
  const failed = checks.filter(({ isOk }) => !isOk);
  if (failed.length === 0) {
    console.log(
      '\nPASS: the lock was lost in the middle of a payment, and each batch was paid exactly once.',
    );
    return 0;
  }
  const why = isFenced ? '' : ' This is what a lock without fencing cannot prevent.';
  console.log(`\nFAIL: ${failed.map(({ name }) => name).join('; ')}: not so.${why}`);
  return 1;
}

/** Rejects at the first thing that must end the demo before its time. */
function interruption(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  for (const signal of Object.keys(EXIT_CODES) as readonly EndSignal[]) {
    process.on(signal, () => reject(new Interrupted(signal)));
  }
  process.on('uncaughtException', reject);
  // Nobody reads any more, as in `npm run demo | head`.
  process.stdout.on('error', reject);
  const late = new StageError(`the demo was not over after ${DEMO_MS_MAX} ms`);
  setTimeout(() => reject(late), DEMO_MS_MAX).unref();
  return promise;
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { 'without-fence': { type: 'boolean', default: false } } });
  const isFenced = !values['without-fence'];
  const interrupted = interruption();
  await using stage = new Stage();
  const checks = await Promise.race([story(stage, isFenced), interrupted]);
  return verdict(checks, isFenced);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = error instanceof Interrupted ? EXIT_CODES[error.signal] : 1;
  const isExpected = error instanceof Interrupted || error instanceof StageError;
  console.error(isExpected ? `\nThe demo was not completed: ${error.message}` : error);
}
