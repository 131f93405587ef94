/**
 * The protected resource: the table of payout batches, the fence that guards it, and the ledger that says what was really
 * paid. The fence is one row for the whole lock and not a column of each batch alone: a batch that the new holder has not
 * reached yet still carries an old number, or none, and would let an older token through.
 */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** The fence row is named after the lock whose tokens it compares. */
export const LOCK_NAME = 'payouts/nightly';
const BUSY_MS_MAX = 5_000;
const CSV_HEADER = 'id,merchant,currency,amount';

export interface Batch {
  readonly id: string;
  readonly merchant: string;
  readonly currency: string;
  /** In hundredths of the currency, so that sums are exact. */
  readonly amountMinor: number;
}

/** One payment that was really made. */
export interface LedgerLine {
  readonly seq: number;
  readonly batch: string;
  readonly runner: string;
  readonly token: number;
  readonly amountMinor: number;
}

/** What the row of a batch says afterwards. */
export interface BatchRow {
  readonly id: string;
  readonly status: string;
  readonly paidBy: string | null;
  readonly fence: number;
}

/** `fenced`: a newer token has been here, nothing was changed. `notPending`: the token is fine, the batch was paid before. */
export type PayOutcome = 'paid' | 'fenced' | 'notPending';

export interface Payment {
  readonly batch: string;
  readonly runner: string;
  readonly token: number;
}

const SCHEMA = `
  CREATE TABLE payout_batches (
    id TEXT PRIMARY KEY, merchant TEXT NOT NULL, currency TEXT NOT NULL, amount_minor INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending', paid_by TEXT, fence INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE payout_fence (lock TEXT PRIMARY KEY, token INTEGER NOT NULL) STRICT;
  -- The witness. It has no unique batch on purpose: it must be able to show a payment made twice.
  CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY, batch TEXT NOT NULL, runner TEXT NOT NULL, token INTEGER NOT NULL, amount_minor INTEGER NOT NULL
  ) STRICT;
`;

const BATCH_COLUMNS = 'id, merchant, currency, amount_minor AS amountMinor';

/** Checks and raises in one statement; no row changed = a newer token has been here. */
export const RAISE_FENCE = 'UPDATE payout_fence SET token = :token WHERE lock = :lock AND token <= :token';
export const PAY_FENCED =
  "UPDATE payout_batches SET status = 'paid', paid_by = :runner, fence = :token " +
  "WHERE id = :batch AND status = 'pending' AND fence <= :token";
/** What a job writes that trusts its lock: the batch was read as pending, and nobody else can have changed it since. */
export const PAY_UNFENCED =
  "UPDATE payout_batches SET status = 'paid', paid_by = :runner, fence = :token WHERE id = :batch";

/** Throws an error that names the line when the file is not what it should be. */
export function readBatches(csvFile: URL): readonly Batch[] {
  const [header, ...lines] = readFileSync(csvFile, 'utf8').trimEnd().split('\n');
  if (header !== CSV_HEADER) throw new Error(`${csvFile.pathname}: line 1 must be ${CSV_HEADER}`);
  return lines.map((line, index) => {
    const match = /^([^,]+),([^,]+),([A-Z]{3}),(\d+)\.(\d\d)$/.exec(line);
    if (match === null) throw new Error(`${csvFile.pathname}: line ${index + 2} is malformed: ${line}`);
    const [, id = '', merchant = '', currency = '', units, hundredths] = match;
    return { id, merchant, currency, amountMinor: Number(`${units}${hundredths}`) };
  });
}

export class PayoutTable {
  readonly #database: DatabaseSync;

  /** Opens what `create` has made, for one process. */
  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: BUSY_MS_MAX });
  }

  static create(file: string, batches: readonly Batch[]): PayoutTable {
    const table = new PayoutTable(file);
    table.#database.exec(`PRAGMA journal_mode = WAL; ${SCHEMA}`);
    table.#database.prepare('INSERT INTO payout_fence (lock, token) VALUES (?, 0)').run(LOCK_NAME);
    table.#transaction(() => {
      for (const batch of batches) table.add(batch);
    });
    return table;
  }

  add({ id, merchant, currency, amountMinor }: Batch): void {
    this.#database
      .prepare('INSERT INTO payout_batches (id, merchant, currency, amount_minor) VALUES (?, ?, ?, ?)')
      .run(id, merchant, currency, amountMinor);
  }

  /**
   * The first thing a new holder does, before it reads anything: from here on an older token can change nothing, so what
   * is read afterwards stays true. False: a newer holder was here already.
   */
  raiseFence(token: number): boolean {
    return this.#database.prepare(RAISE_FENCE).run({ token, lock: LOCK_NAME }).changes === 1;
  }

  get fence(): number {
    const row = this.#database.prepare('SELECT token FROM payout_fence WHERE lock = ?').get(LOCK_NAME);
    return Number(row?.token);
  }

  nextPending(): Batch | null {
    const sql = `SELECT ${BATCH_COLUMNS} FROM payout_batches WHERE status = 'pending' ORDER BY id LIMIT 1`;
    return (this.#database.prepare(sql).get() as Batch | undefined) ?? null;
  }

  /** Fence, batch and ledger in one transaction: the fence row's lock keeps a newer holder out until it ends. */
  pay({ batch, runner, token }: Payment): PayOutcome {
    return this.#transaction(() => {
      if (!this.raiseFence(token)) return 'fenced';
      if (this.#database.prepare(PAY_FENCED).run({ batch, runner, token }).changes === 0) return 'notPending';
      this.#enter({ batch, runner, token });
      return 'paid';
    });
  }

  /** The planted failure of `--without-fence`. */
  payUnfenced({ batch, runner, token }: Payment): PayOutcome {
    return this.#transaction(() => {
      if (this.#database.prepare(PAY_UNFENCED).run({ batch, runner, token }).changes === 0)
        return 'notPending';
      this.#enter({ batch, runner, token });
      return 'paid';
    });
  }

  ledger(): readonly LedgerLine[] {
    const sql = 'SELECT seq, batch, runner, token, amount_minor AS amountMinor FROM ledger ORDER BY seq';
    return this.#database.prepare(sql).all() as unknown as readonly LedgerLine[];
  }

  rows(): readonly BatchRow[] {
    const sql = 'SELECT id, status, paid_by AS paidBy, fence FROM payout_batches ORDER BY id';
    return this.#database.prepare(sql).all() as unknown as readonly BatchRow[];
  }

  close(): void {
    this.#database.close();
  }

  #enter({ batch, runner, token }: Payment): void {
    this.#database
      .prepare(
        'INSERT INTO ledger (batch, runner, token, amount_minor) ' +
          'SELECT id, :runner, :token, amount_minor FROM payout_batches WHERE id = :batch',
      )
      .run({ batch, runner, token });
  }

  #transaction<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}
