/**
 * Where an HTTP service keeps the highest token of each resource. A store never lowers or forgets one: whoever forgets
 * lets an older holder in.
 */
import { FENCE_TABLE, raiseFence, type SqlClient } from './postgresql.ts';
import type { TableName } from './sql-text.ts';
import { assertResource, assertToken, StaleTokenError } from './stale-token.ts';

export interface FenceStore {
  /**
   * Checks and raises in one step, atomically against every other caller. Resolves with the highest token from now on:
   * the caller's own if it passed, a greater one if it is stale.
   */
  raise(resource: string, token: number): number | Promise<number>;
}

const RESOURCES_MAX = 100_000;

/**
 * For tests, and for a service of one process whose protected state dies with it. **It forgets everything when the process
 * restarts**, and two processes know nothing of each other. It refuses new resources when it is full, since forgetting old
 * ones would let older tokens in.
 */
export class MemoryFenceStore implements FenceStore {
  readonly #tokens = new Map<string, number>();
  readonly #resourcesMax: number;

  constructor({ resourcesMax = RESOURCES_MAX }: { readonly resourcesMax?: number } = {}) {
    this.#resourcesMax = resourcesMax;
  }

  raise(resource: string, token: number): number {
    assertToken(token);
    assertResource(resource);
    const current = this.#tokens.get(resource);
    if (current === undefined && this.#tokens.size >= this.#resourcesMax)
      throw new RangeError(`the store is full: ${this.#resourcesMax} resources`);
    if (current !== undefined && current > token) return current;
    this.#tokens.set(resource, token);
    return token;
  }
}

/** SQLSTATE of a transaction that met another one, where a database isolates more than by default; it is to be begun again. */
const SERIALIZATION_FAILURE = '40001';
const TRIES_MAX = 5;

/** In the table of `fenceTableSql`, shared by all processes of a service. One statement each: a pool will do. */
export class PostgresFenceStore implements FenceStore {
  readonly #client: SqlClient;
  readonly #table: TableName;

  constructor(client: SqlClient, table: TableName = FENCE_TABLE) {
    this.#client = client;
    this.#table = table;
  }

  async raise(resource: string, token: number): Promise<number> {
    for (let tries = 1; ; tries++) {
      try {
        await raiseFence(this.#client, { resource, token, table: this.#table });
        return token;
      } catch (error) {
        if (error instanceof StaleTokenError) return error.current;
        if (!metAnother(error) || tries === TRIES_MAX) throw error;
      }
    }
  }
}

function metAnother(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === SERIALIZATION_FAILURE;
}
