/**
 * Was it right? The answers come from the database, not from what the runners said of themselves; only that A tried a
 * late write at all is taken from A, since a refused write leaves no trace.
 */
import type { Batch, LedgerLine, PayoutTable } from './payouts.ts';

export interface Check {
  readonly name: string;
  readonly isOk: boolean;
  /** What was found. */
  readonly found: string;
}

export interface Observed {
  readonly batches: readonly Batch[];
  readonly table: PayoutTable;
  /** The batch that A tried to pay after it was resumed, if it did. */
  readonly lateBatch: string | null;
}

export function check({ batches, table, lateBatch }: Observed): readonly Check[] {
  const ledger = table.ledger();
  return [paidOnce(batches, ledger), agrees(table, ledger), tokensGrew(ledger), lateWrite(ledger, lateBatch)];
}

function paidOnce(batches: readonly Batch[], ledger: readonly LedgerLine[]): Check {
  const wrong = batches.flatMap((batch) => {
    const payments = ledger.filter((line) => line.batch === batch.id);
    if (payments.length === 1 && payments[0]?.amountMinor === batch.amountMinor) return [];
    const by = payments.map(({ runner }) => runner).join(' and by ');
    return [
      payments.length === 0 ? `${batch.id} was not paid` : `${money(batch)} (${batch.id}) paid by ${by}`,
    ];
  });
  const strangers = ledger.filter((line) => !batches.some(({ id }) => id === line.batch)).length;
  if (strangers > 0) wrong.push(`${strangers} payment(s) of no batch of the file`);
  const found =
    wrong.length === 0 ? `${ledger.length} payments for ${batches.length} batches` : wrong.join('; ');
  return { name: 'every batch was paid exactly once', isOk: wrong.length === 0, found };
}

function agrees(table: PayoutTable, ledger: readonly LedgerLine[]): Check {
  const rows = table.rows();
  const differing = rows.filter(({ id, status, paidBy, fence }) => {
    const line = ledger.find(({ batch }) => batch === id);
    return line === undefined || status !== 'paid' || paidBy !== line.runner || fence !== line.token;
  });
  const found =
    differing.length === 0 ? `${rows.length} rows` : `differ in ${differing.map(({ id }) => id).join(', ')}`;
  return { name: 'table and ledger agree on who paid', isOk: differing.length === 0, found };
}

function tokensGrew(ledger: readonly LedgerLine[]): Check {
  const [tokensA, tokensB] = ['A', 'B'].map(
    (name) => new Set(ledger.filter(({ runner }) => runner === name).map(({ token }) => token)),
  );
  const [a = 0] = tokensA ?? [];
  const [b = 0] = tokensB ?? [];
  const isOk = tokensA?.size === 1 && tokensB?.size === 1 && a > 0 && a < b;
  return { name: 'the later grant has the higher token', isOk, found: `A ${a}, B ${b}` };
}

function lateWrite(ledger: readonly LedgerLine[], lateBatch: string | null): Check {
  const name = "A's late write was refused";
  const firstOfB = ledger.find(({ runner }) => runner === 'B');
  if (lateBatch === null || firstOfB === undefined) {
    return { name, isOk: false, found: 'it did not come to a late write: nothing is shown' };
  }
  const landed = ledger.filter(({ runner, seq }) => runner === 'A' && seq > firstOfB.seq);
  const isOk = landed.length === 0;
  return {
    name,
    isOk,
    found: isOk
      ? `${lateBatch}: no payment of A after B's first`
      : `${lateBatch}: paid by A after B had begun`,
  };
}

/** `GBP 14,355.22` */
export function money({ currency, amountMinor }: Batch): string {
  const amount = (amountMinor / 100).toLocaleString('en', { minimumFractionDigits: 2 });
  return `${currency} ${amount}`;
}
