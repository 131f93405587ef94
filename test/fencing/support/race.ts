/** Looking at who waits for whom inside PostgreSQL, so that a race is arranged and not hoped for. */
import type pg from 'pg';

const WAIT_MS_MAX = 10_000;

export async function pidOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** Resolves once the connection with this pid waits for a lock that somebody else holds. */
export async function untilBlocked(observer: pg.Client, pid: number): Promise<void> {
  const giveUpAt = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const { rows } = await observer.query<{ n: number }>('SELECT cardinality(pg_blocking_pids($1)) AS n', [
      pid,
    ]);
    if ((rows[0]?.n ?? 0) > 0) return;
    if (Date.now() > giveUpAt) throw new Error(`connection ${pid} is not blocked`);
  }
}

/** A gate to stand still at. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
