/**
 * `npm run demo`: one nightly payout job, started twice. The runner that holds the lock is stopped for longer than its
 * lease, the other takes over, and the first wakes up in the middle of a payment. No lock service can prevent that;
 * the table can, because every grant carries a higher token. `--without-fence` shows the same without that check.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Check, check } from './checks.ts';
import { type Runner, Stage, StageError } from './children.ts';
import { narrate } from './narration.ts';
import {
  type Batch,
  LOCK_NAME,
  PAY_FENCED,
  PAY_UNFENCED,
  PayoutTable,
  RAISE_FENCE,
  readBatches,
} from './payouts.ts';
import { EXIT_LOST, type RunnerEvent } from './runner-events.ts';

const CSV_FILE = new URL('payout-batches.csv', import.meta.url);
/** A is stopped while it has this batch in hand. */
const SLOW_BATCH = 'PB-07314';
/** So many batches B pays before A is resumed: the one A has in hand, and not yet all that are left. */
const PAID_BY_B_BEFORE_RESUME = 5;
const DEMO_MS_MAX = 60_000;
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type EndSignal = keyof typeof EXIT_CODES;

function row(who: string, what: string, token?: number): void {
  const seconds = (performance.now() / 1_000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${who.padEnd(6)}  ${String(token ?? '').padEnd(16)}  ${what}`);
}

function header(isFenced: boolean, batches: readonly Batch[]): void {
  const merchants = new Set(batches.map(({ merchant }) => merchant)).size;
  const how = isFenced
    ? 'A payment is one transaction, and pays only if both statements change a row:'
    : 'WITHOUT FENCE. A payment is one statement that trusts the lock:';
  const statements = isFenced ? [RAISE_FENCE, PAY_FENCED] : [PAY_UNFENCED];
  console.log(`One nightly payout job, started twice: ${batches.length} batches for ${merchants} merchants.`);
  console.log(`${how}\n`);
  for (const statement of statements) console.log(`    ${statement.replace(' WHERE', '\n      WHERE')}`);
  console.log('\n   time  runner  token             event');
}

/** The two runners and what becomes of them. */
class Story {
  readonly #stage: Stage;
  readonly #isFenced: boolean;
  readonly #batches = readBatches(CSV_FILE);
  #isResumed = false;
  /** What A tried to pay after it was resumed. */
  #lateBatch: string | null = null;

  constructor(stage: Stage, isFenced: boolean) {
    this.#stage = stage;
    this.#isFenced = isFenced;
  }

  async tell(): Promise<readonly Check[]> {
    header(this.#isFenced, this.#batches);
    const database = join(this.#stage.folder, 'payouts.sqlite');
    const table = PayoutTable.create(database, this.#batches);
    try {
      await this.#perform(database);
      return check({ table, batches: this.#batches, lateBatch: this.#lateBatch });
    } finally {
      table.close();
    }
  }

  async #perform(database: string): Promise<void> {
    const { url, pid, manifest } = await this.#stage.startLeasehold();
    row('', `leasehold dev serves ${manifest} on ${url} (pid ${pid})`);
    const a = this.#start('A', { url, database, slowBatch: SLOW_BATCH });
    await a.has('granted');
    const b = this.#start('B', { url, database });
    await a.has('inHand');
    a.signal('SIGSTOP');
    row('A', '... and is STOPPED (SIGSTOP) before it writes; its keepalives stop with it');
    await b.has('granted');
    await b.has('paid', PAID_BY_B_BEFORE_RESUME);
    this.#isResumed = true;
    row('A', 'is RESUMED (SIGCONT) and goes on as if no time had passed');
    a.signal('SIGCONT');
    await a.endsWith(EXIT_LOST);
    await b.endsWith(0);
  }

  #start(name: string, options: { url: string; database: string; slowBatch?: string }): Runner {
    const onEvent = (event: RunnerEvent): void => this.#onEvent(name, event);
    const runner = this.#stage.startRunner({ name, isFenced: this.#isFenced, onEvent, ...options });
    row(name, `starts (pid ${runner.pid})`);
    return runner;
  }

  #onEvent(name: string, event: RunnerEvent): void {
    const isLate = name === 'A' && this.#isResumed;
    if (isLate && (event.event === 'refused' || event.event === 'paid')) this.#lateBatch = event.batch;
    const scene = { batches: this.#batches, lockName: LOCK_NAME, slowBatch: SLOW_BATCH, isLate };
    const text = narrate(event, scene);
    if (text !== null) row(name, text, 'token' in event ? event.token : undefined);
  }
}

/** Prints the verdict and returns the exit code. */
function verdict(checks: readonly Check[], isFenced: boolean): number {
  console.log('\nChecks, read from the database:');
  for (const { name, isOk, found } of checks) {
    console.log(`  ${isOk ? 'ok    ' : 'FAILED'}  ${name} (${found})`);
  }
  const failure = checks.find(({ isOk }) => !isOk);
  if (failure === undefined) {
    console.log(
      '\nPASS: a runner lost its lock in the middle of a payment, and each batch was paid exactly once.',
    );
    return 0;
  }
  const why = isFenced ? '' : ' This is what no lock can prevent, and a fence does: run it without the flag.';
  console.log(`\nFAIL: ${failure.found}.${why}`);
  return 1;
}

/** Whatever ends the demo before its time: `reason` rejects with it, so that all is cleaned up as always. */
class Interruption {
  readonly reason: Promise<never>;
  signal: EndSignal | null = null;

  constructor() {
    const { promise, reject } = Promise.withResolvers<never>();
    this.reason = promise;
    for (const signal of Object.keys(EXIT_CODES) as readonly EndSignal[]) {
      process.on(signal, () => {
        this.signal = signal;
        reject(new StageError(`ended by ${signal}`));
      });
    }
    process.on('uncaughtException', reject);
    // As in `npm run demo | head`.
    process.stdout.on('error', () => reject(new StageError('nobody reads its output any more')));
    const tooLate = new StageError(`the demo was not over after ${DEMO_MS_MAX} ms`);
    setTimeout(() => reject(tooLate), DEMO_MS_MAX).unref();
  }
}

async function main(interruption: Interruption): Promise<number> {
  const { values } = parseArgs({ options: { 'without-fence': { type: 'boolean', default: false } } });
  const isFenced = !values['without-fence'];
  await using stage = new Stage();
  const checks = await Promise.race([new Story(stage, isFenced).tell(), stage.failed, interruption.reason]);
  return verdict(checks, isFenced);
}

const interruption = new Interruption();
try {
  process.exitCode = await main(interruption);
} catch (error) {
  // A Ctrl-C reaches the children too: the first to be seen may be the end of one of them.
  const { signal } = interruption;
  process.exitCode = signal === null ? 1 : EXIT_CODES[signal];
  if (signal !== null) console.error(`\nThe demo was ended by ${signal}; nothing is left running.`);
  else console.error(error instanceof StageError ? `\nThe demo was not completed: ${error.message}` : error);
}
