/**
 * Triggers that hold every writer of a PostgreSQL table to its fence, also the one that knows nothing of this library.
 * A writer states its token with `SET LOCAL leasehold.token = '...'` (`withFence` does); without one it is refused. They
 * are a net under writers that forget, not a defence against one that wants to get round them: it may state any token.
 */
import { TOKEN_MAX } from '../../api/limits.ts';
import { dollarQuote, quoteIdentifier, quoteLiteral, quoteTable, type TableName } from './sql-text.ts';
import { StaleTokenError } from './stale-token.ts';

/** PostgreSQL keeps settings with a dot for applications. */
export const TOKEN_SETTING = 'leasehold.token';
/** SQLSTATE of a refusal of an older token. Its DETAIL is JSON: {token, current, resource}. */
export const STALE_SQLSTATE = 'LH001';
/** SQLSTATE of a refusal of a writer that stated no token. */
export const NO_TOKEN_SQLSTATE = 'LH002';

interface Trigger {
  readonly table: TableName;
  /** Of trigger and function; default `<table>_fence`. */
  readonly name?: string;
}

export interface RowFence extends Trigger {
  /** A bigint column, null or 0 before the first write. The trigger fills it. */
  readonly column: string;
}

/**
 * Each row remembers the newest token that wrote it; changing or deleting it with an older one is refused. As with
 * `fencedUpdate`, a row that the newer holder has not reached lets an older one through. TRUNCATE fires no row trigger.
 */
export function rowFenceSql(guard: RowFence): string {
  const fence = quoteIdentifier(guard.column);
  const resource = quoteLiteral(quoteTable(guard.table));
  const body = `${STATED}
  IF TG_OP <> 'INSERT' THEN
    newest := OLD.${fence};
    IF newest > mine THEN
${refusal(resource)}
    END IF;
  END IF;
  IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
  NEW.${fence} := mine;
  RETURN NEW;
`;
  return triggerSql(guard, body, 'INSERT OR UPDATE OR DELETE', 'ROW');
}

export interface TableFence extends Trigger {
  /** The row of the fence table: the lock's name. */
  readonly resource: string;
  /** With its schema, because a trigger must not depend on the writer's search path. */
  readonly fenceTable: readonly [schema: string, table: string];
}

/**
 * The whole table has one fence, the row of `fenceTableSql`: whatever is written raises it first, or is refused. Still
 * raise it yourself before you read: a statement sees the data of the moment before its trigger ran.
 */
export function tableFenceSql(guard: TableFence): string {
  const fence = quoteTable(guard.fenceTable);
  const row = quoteLiteral(guard.resource);
  const body = `${STATED}
  INSERT INTO ${fence} AS fence (resource, token) VALUES (${row}, mine)
    ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token;
  IF NOT FOUND THEN
    SELECT fence.token INTO newest FROM ${fence} AS fence WHERE fence.resource = ${row};
${refusal(row)}
  END IF;
  RETURN NULL;
`;
  return triggerSql(guard, body, 'INSERT OR UPDATE OR DELETE OR TRUNCATE', 'STATEMENT');
}

const STATED = `
DECLARE
  stated text := nullif(current_setting(${quoteLiteral(TOKEN_SETTING)}, true), '');
  mine bigint;
  newest bigint;
BEGIN
  IF stated IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '${NO_TOKEN_SQLSTATE}', MESSAGE = 'this write states no fencing token',
      HINT = 'SET LOCAL ${TOKEN_SETTING} = ''...'' in the transaction that writes';
  END IF;
  mine := stated::bigint;
  IF mine NOT BETWEEN 1 AND ${TOKEN_MAX} THEN
    RAISE EXCEPTION USING ERRCODE = '${NO_TOKEN_SQLSTATE}', MESSAGE = 'a fencing token is 1 to 2^53 - 1';
  END IF;`;

/** `resource`: an SQL expression. */
function refusal(resource: string): string {
  return `      RAISE EXCEPTION USING ERRCODE = '${STALE_SQLSTATE}', MESSAGE = 'stale fencing token',
        DETAIL = json_build_object('token', mine, 'current', newest, 'resource', ${resource})::text;`;
}

function triggerSql(
  { table, name }: Trigger,
  body: string,
  events: string,
  each: 'ROW' | 'STATEMENT',
): string {
  const plain = typeof table === 'string' ? table : table[1];
  const trigger = quoteIdentifier(name ?? `${plain}_fence`);
  const schema = typeof table === 'string' ? '' : `${quoteIdentifier(table[0])}.`;
  return `CREATE OR REPLACE FUNCTION ${schema}${trigger}() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS ${dollarQuote(`${body}END
`)};
DROP TRIGGER IF EXISTS ${trigger} ON ${quoteTable(table)};
CREATE TRIGGER ${trigger} BEFORE ${events} ON ${quoteTable(table)}
FOR EACH ${each} EXECUTE FUNCTION ${schema}${trigger}();
`;
}

/** A refusal as the typed error, whether a helper threw it or a trigger did; null for every other error. */
export function staleTokenFrom(error: unknown): StaleTokenError | null {
  if (error instanceof StaleTokenError) return error;
  const { code, detail } = (error ?? {}) as { readonly code?: unknown; readonly detail?: unknown };
  if (code !== STALE_SQLSTATE || typeof detail !== 'string') return null;
  const { token, current, resource } = JSON.parse(detail) as StaleTokenError;
  return new StaleTokenError({ token, current, resource });
}
