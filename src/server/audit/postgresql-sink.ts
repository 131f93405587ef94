/**
 * PostgreSQL as a sink: a row for each event, exactly once, since (group, lineage, entry, position) is the table's key and a row that is there
 * already is left alone. A batch is one statement, so it is there whole or not at all.
 *
 * npm `pg` is loaded when the first batch is written: it costs nothing where it is not used.
 */
import type { Client } from 'pg';
import type { AuditBatch, AuditRecord } from './records.ts';
import { type AuditSink, unlessAborted } from './sink.ts';

export interface PostgresSinkOptions {
  /** `postgresql://user:password@host:port/database` */
  readonly url: string;
  /** A plain name, or `schema.name`. */
  readonly table: string;
  /** Whether it makes the table where it is missing. */
  readonly createTable: boolean;
  readonly timeoutMs: number;
}

/** The table, also for those who make it by hand. `name` has passed the configuration's check. */
export function auditTableSql(name: string): string {
  return `CREATE TABLE IF NOT EXISTS ${name} (
  lock_group  text        NOT NULL,
  lineage     text        NOT NULL,
  entry_index bigint      NOT NULL,
  position    integer     NOT NULL,
  epoch       bigint      NOT NULL,
  group_ms    bigint      NOT NULL,
  wall_time   timestamptz,
  event_hash  text        NOT NULL,
  type        text        NOT NULL,
  name        text,
  session     bigint,
  token       bigint,
  event       json        NOT NULL,
  PRIMARY KEY (lock_group, lineage, entry_index, position)
)`;
}

const COLUMNS = [
  ['lock_group', 'text'],
  ['lineage', 'text'],
  ['entry_index', 'bigint'],
  ['position', 'integer'],
  ['epoch', 'bigint'],
  ['group_ms', 'bigint'],
  ['wall_time', 'timestamptz'],
  ['event_hash', 'text'],
  ['type', 'text'],
  ['name', 'text'],
  ['session', 'bigint'],
  ['token', 'bigint'],
  ['event', 'json'],
] as const;

type Row = readonly (string | number | null)[];

export class PostgresSink implements AuditSink {
  readonly kind = 'postgresql';
  readonly #options: PostgresSinkOptions;
  readonly #insert: string;
  #client: Client | null = null;

  constructor(options: PostgresSinkOptions) {
    this.#options = options;
    const names = COLUMNS.map(([name]) => name).join(', ');
    const arrays = COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ');
    this.#insert = `INSERT INTO ${options.table} (${names}) SELECT * FROM unnest(${arrays}) ON CONFLICT DO NOTHING`;
  }

  async write({ records }: AuditBatch, signal: AbortSignal): Promise<void> {
    const rows = records.flatMap(rowsOf);
    if (rows.length === 0) return;
    // Whatever is under way ends with its connection: nothing is written behind the back of an exporter that was stopped.
    const abandon = (): void => this.#drop(this.#client);
    signal.addEventListener('abort', abandon, { once: true });
    try {
      await unlessAborted(this.#insertRows(rows, signal), signal);
    } catch (error) {
      // Its state is not known: the next try begins anew.
      this.#drop(this.#client);
      throw error;
    } finally {
      signal.removeEventListener('abort', abandon);
    }
  }

  async close(): Promise<void> {
    this.#drop(this.#client);
  }

  async #insertRows(rows: readonly Row[], signal: AbortSignal): Promise<void> {
    const client = this.#client ?? (await this.#connect(signal));
    const columns = COLUMNS.map((_, column) => rows.map((row) => row[column] ?? null));
    await client.query(this.#insert, columns);
  }

  async #connect(signal: AbortSignal): Promise<Client> {
    const { url, table, createTable, timeoutMs } = this.#options;
    const { default: pg } = await import('pg');
    // Stopped meanwhile: nobody would end a connection that is made now.
    signal.throwIfAborted();
    const client = new pg.Client({
      connectionString: url,
      application_name: 'leasehold-audit',
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      statement_timeout: timeoutMs,
      keepAlive: true,
    });
    // Without a listener a connection that breaks while nothing is sent would end the process.
    client.on('error', () => this.#drop(client));
    // From now on, so that it can be given up before it is there.
    this.#client = client;
    await client.connect();
    if (createTable) await client.query(auditTableSql(table));
    return client;
  }

  #drop(client: Client | null): void {
    if (client === null) return;
    if (this.#client === client) this.#client = null;
    client.end().catch(() => undefined);
  }
}

function rowsOf(record: AuditRecord): readonly Row[] {
  if (record.type === 'gap') {
    const { group, lineage, gap } = record;
    const event = JSON.stringify(gap);
    return [[clean(group), lineage, gap.to, -1, 0, 0, null, '', 'gap', null, null, null, event]];
  }
  const { lineage, epoch, index, at, wallMs, eventHash, events } = record.entry;
  const group = clean(record.group);
  return events.map((event, position) => [
    group,
    lineage,
    index,
    position,
    epoch,
    Math.round(at),
    new Date(wallMs).toISOString(),
    eventHash,
    event.type,
    'name' in event ? clean(event.name) : null,
    'session' in event ? event.session : null,
    'token' in event ? event.token : null,
    JSON.stringify(event),
  ]);
}

/** PostgreSQL has no zero character in texts. In the JSON it stays, escaped. */
function clean(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}
