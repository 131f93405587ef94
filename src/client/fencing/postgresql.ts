/**
 * Fences in PostgreSQL (13 or newer), over any client with `query(text, values)`, such as `pg`'s.
 *
 * The usual fence is one row for one lock, raised by the first statement of every transaction that writes. It checks and
 * locks in one: until the transaction ends, a newer holder waits behind it, so a write is before the newer holder's first
 * look or it is refused. A transaction that stands still therefore keeps the newer holder waiting: give the writers'
 * sessions an `idle_in_transaction_session_timeout` of about the lease.
 */
import { TOKEN_MAX } from '../../api/limits.ts';
import { quoteIdentifier, quoteLiteral, quoteTable, type TableName } from './sql-text.ts';
import {
  assertResource,
  assertToken,
  readToken,
  reported,
  type StaleReport,
  StaleTokenError,
} from './stale-token.ts';
import { staleTokenFrom, TOKEN_SETTING } from './triggers.ts';

/** One connection. A pool gives each query another one, and a transaction needs them all on the same. */
export interface SqlClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

export const FENCE_TABLE = 'leasehold_fence';

export interface Fence {
  /** Names the row: use the lock's name, `<alias>/<rest>`. */
  readonly resource: string;
  readonly token: number;
  /** The table of `fenceTableSql`; default `leasehold_fence`. */
  readonly table?: TableName;
}

/** The table that holds the highest token of each resource. Run it once, where the other migrations are. */
export function fenceTableSql(table: TableName = FENCE_TABLE): string {
  return `CREATE TABLE IF NOT EXISTS ${quoteTable(table)} (
  resource text PRIMARY KEY,
  token bigint NOT NULL CHECK (token BETWEEN 0 AND ${TOKEN_MAX})
)`;
}

/**
 * The statement behind `raiseFence`, for programs that send their own: $1 the resource, $2 the token. One row: go on.
 * No row: a newer token was here; roll back and stop. It creates a missing row, also when two do so at once.
 */
export function raiseFenceSql(table: TableName = FENCE_TABLE): string {
  return `INSERT INTO ${quoteTable(table)} AS fence (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token
RETURNING ${setting('token::text')}`;
}

/** Tells the triggers of this folder the token, until the transaction ends. */
function setting(value: string): string {
  return `set_config(${quoteLiteral(TOKEN_SETTING)}, ${value}, true)`;
}

/** The highest token seen; 0 = none. */
export async function readFence(client: SqlClient, { resource, table = FENCE_TABLE }: Omit<Fence, 'token'>) {
  const text = `SELECT token FROM ${quoteTable(table)} WHERE resource = $1`;
  const [row] = (await client.query(text, [resource])).rows;
  return row === undefined ? 0 : readToken((row as { token: unknown }).token, `the fence of ${resource}`);
}

export interface ReportingFence extends Fence {
  /** Awaited before the refusal is thrown. */
  readonly report?: StaleReport;
}

/**
 * Checks the token and raises the fence to it. Outside a transaction it shuts older holders out from now on: do that
 * first after the grant, before anything is read. As the first statement of a transaction of your own it keeps newer ones
 * out until that ends; leave `report` out there, and report after the ROLLBACK.
 *
 * Throws StaleTokenError (roll back and stop). With REPEATABLE READ or SERIALIZABLE it may instead throw PostgreSQL's
 * 40001, as every statement there may: start the transaction again.
 */
export async function raiseFence(client: SqlClient, fence: ReportingFence): Promise<void> {
  const stale = await raise(client, fence);
  if (stale !== null) throw await reported(stale, fence.report);
}

async function raise(client: SqlClient, fence: Fence): Promise<StaleTokenError | null> {
  const { resource, token, table = FENCE_TABLE } = fence;
  assertToken(token);
  assertResource(resource);
  const { rows } = await client.query(raiseFenceSql(table), [resource, token]);
  if (rows.length > 0) return null;
  const current = await readFence(client, fence);
  if (current <= token) throw new Error(`the fence of ${resource} was lowered to ${current} meanwhile`);
  return new StaleTokenError({ token, current, resource });
}

/**
 * One fenced transaction: BEGIN, raise the fence, `work`, COMMIT. `work` writes with the same client, and reads in it what
 * it relies on. If anything throws, all of it is rolled back, the fence too: what was read then counts for nothing.
 *
 * Throws what `work` throws; StaleTokenError, also for a refusal by a trigger of `rowFenceSql` or `tableFenceSql`.
 * An error of COMMIT itself (a lost connection) leaves open whether it happened, as with any transaction.
 */
export async function withFence<Result>(
  client: SqlClient,
  fence: ReportingFence,
  work: () => Promise<Result>,
): Promise<Result> {
  await client.query('BEGIN');
  try {
    const refused = await raise(client, fence);
    if (refused !== null) throw refused;
    const begun = await transactionOf(client);
    const result = await work();
    if ((await transactionOf(client)) !== begun)
      throw new Error('the transaction ended inside `work`, or the client is a pool: it was not fenced');
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // A connection that is gone has rolled back already; the first error is the one that says why.
    await client.query('ROLLBACK').catch(() => undefined);
    const stale = staleTokenFrom(error);
    throw stale === null ? error : await reported(stale, fence.report);
  }
}

/** Fails in a transaction that an error has ended, which COMMIT would roll back without a word. */
async function transactionOf(client: SqlClient): Promise<unknown> {
  const [row] = (await client.query('SELECT pg_current_xact_id_if_assigned()::text AS id')).rows;
  return (row as { id: unknown } | undefined)?.id ?? null;
}

export interface RowUpdate {
  readonly table: TableName;
  /** The columns of a unique key, with their values. */
  readonly where: Readonly<Record<string, unknown>>;
  readonly set: Readonly<Record<string, unknown>>;
  readonly token: number;
  /** A bigint column of the row, null or 0 before the first write; default `fence`. */
  readonly fenceColumn?: string;
}

/**
 * One row that carries its own fence: changes it unless a newer token has. It guards that row and no other: an older
 * holder still gets through to the rows that the newer one has not reached. Where the lock guards more than one row, use
 * `withFence`.
 *
 * Resolves true; false if there is no such row. Throws StaleTokenError.
 */
export async function fencedUpdate(client: SqlClient, update: RowUpdate): Promise<boolean> {
  const { token, fenceColumn = 'fence' } = update;
  assertToken(token);
  const { text, values, condition, resource } = updateSql(update, quoteIdentifier(fenceColumn));
  const { rows } = await client.query(text, values);
  if (rows.length > 1)
    throw new Error(`${resource} names ${rows.length} rows, and all were changed; roll back`);
  if (rows.length === 1) return true;
  const select = `SELECT ${quoteIdentifier(fenceColumn)} AS token FROM ${quoteTable(update.table)} WHERE ${condition}`;
  const [row] = (await client.query(select, Object.values(update.where))).rows;
  const stored = (row as { token: unknown } | undefined)?.token ?? null;
  const current = stored === null ? 0 : readToken(stored, resource);
  if (current > token) throw new StaleTokenError({ token, current, resource });
  return false;
}

function updateSql({ table, where, set, token }: RowUpdate, fenceColumn: string) {
  const keys = Object.entries(where);
  if (keys.length === 0 || keys.some(([, value]) => value === null || value === undefined))
    throw new TypeError('`where` names the columns of a unique key, none of them null');
  const condition = keys.map(([name], index) => `${quoteIdentifier(name)} = $${index + 1}`).join(' AND ');
  const fence = `$${keys.length + 1}`;
  const changes = Object.keys(set).map(
    (name, index) => `${quoteIdentifier(name)} = $${keys.length + 2 + index}`,
  );
  const text = `UPDATE ${quoteTable(table)} SET ${[...changes, `${fenceColumn} = ${fence}`].join(', ')}
WHERE ${condition} AND (${fenceColumn} IS NULL OR ${fenceColumn} <= ${fence}) RETURNING 1`;
  return {
    text,
    values: [...Object.values(where), token, ...Object.values(set)],
    condition,
    resource: `${quoteTable(table)} ${JSON.stringify(where)}`,
  };
}
