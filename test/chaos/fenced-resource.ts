/**
 * What the locks protect: a resource that remembers the newest token of each lock and refuses an older one. Every write it accepted is kept in
 * order, so that the judge sees for itself that none of them came under an older token than one before it.
 */
import type pg from 'pg';
import { Postgres } from '../fencing/support/postgresql.ts';

export interface AcceptedWrite {
  readonly lock: string;
  readonly token: number;
}

export interface FencedResource {
  readonly kind: string;
  /** Whether it was accepted. */
  write(lock: string, token: number): Promise<boolean>;
  accepted(): Promise<readonly AcceptedWrite[]>;
  stop(): Promise<void>;
}

/** PostgreSQL where it is installed, else a register in this process. */
export async function startFencedResource(): Promise<FencedResource> {
  try {
    return await PostgresResource.start();
  } catch (error) {
    if (!String(error).includes('not installed')) throw error;
    return new RegisterResource();
  }
}

const CONNECTIONS = 8;
const TABLES = `
  CREATE TABLE fence (lock text PRIMARY KEY, fence bigint NOT NULL);
  CREATE TABLE write (seq bigserial PRIMARY KEY, lock text NOT NULL, token bigint NOT NULL);`;
/** The row lock of the fence orders the writes of one lock: `seq` is drawn while it is held. */
const WRITE = `
  WITH fenced AS (
    INSERT INTO fence VALUES ($1, $2) ON CONFLICT (lock) DO UPDATE SET fence = $2 WHERE fence.fence <= $2
    RETURNING lock)
  INSERT INTO write (lock, token) SELECT lock, $2 FROM fenced RETURNING seq`;

class PostgresResource implements FencedResource {
  readonly kind = 'PostgreSQL';
  readonly #server: Postgres;
  readonly #connections: readonly pg.Client[];
  #next = 0;

  private constructor(server: Postgres, connections: readonly pg.Client[]) {
    this.#server = server;
    this.#connections = connections;
  }

  static async start(): Promise<PostgresResource> {
    const server = await Postgres.start();
    const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => server.connect()));
    await connections[0]?.query(TABLES);
    return new PostgresResource(server, connections);
  }

  async write(lock: string, token: number): Promise<boolean> {
    const connection = this.#connections[this.#next++ % this.#connections.length] as pg.Client;
    const { rowCount } = await connection.query(WRITE, [lock, token]);
    return rowCount === 1;
  }

  async accepted(): Promise<readonly AcceptedWrite[]> {
    const { rows = [] } =
      (await this.#connections[0]?.query<{ lock: string; token: string }>(
        'SELECT lock, token FROM write ORDER BY seq',
      )) ?? {};
    return rows.map(({ lock, token }) => ({ lock, token: Number(token) }));
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

class RegisterResource implements FencedResource {
  readonly kind = 'a register in this process (PostgreSQL is not installed)';
  readonly #fences = new Map<string, number>();
  readonly #accepted: AcceptedWrite[] = [];

  write(lock: string, token: number): Promise<boolean> {
    const isAccepted = token >= (this.#fences.get(lock) ?? 0);
    if (isAccepted) {
      this.#fences.set(lock, token);
      this.#accepted.push({ lock, token });
    }
    return Promise.resolve(isAccepted);
  }

  accepted(): Promise<readonly AcceptedWrite[]> {
    return Promise.resolve(this.#accepted);
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }
}
