// Many pods of a new version start at once. The first migrates the schema; the others wait for it in a queue, find nothing
// left to do, and start serving. If the first one dies, its lock is free when its lease has ended at the latest, and the next
// one goes on where it stopped.
// Usage: node schema-migration.mjs schema.json
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'leasehold';

const [file = 'schema.json'] = process.argv.slice(2);
const MIGRATIONS = ['create orders', 'add orders.currency', 'backfill orders.currency', 'drop orders.legacy'];
const WAIT_MS = 10 * 60_000;

/** The state of the database; here a file that is always replaced as a whole. */
function schema() {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { fence: 0, applied: [] };
}

/** One migration, all or nothing, and refused under an older token than the schema has seen (in SQL: one transaction). */
async function apply(migration, { token, signal }) {
  await pause(200, undefined, { signal });
  const { fence, applied } = schema();
  if (fence > token) throw new Error(`stale token ${token}: the schema has seen ${fence}`);
  writeFileSync(
    `${file}.${token}`,
    JSON.stringify({ fence: token, applied: [...applied, { migration, token }] }),
  );
  renameSync(`${file}.${token}`, file);
}

const client = createClient({ client: `pod-${process.pid}` });
try {
  // One request that waits its turn: no tries to be used up, no restarts that pile up.
  await client.withLock('jobs/orders-schema', { waitMs: WAIT_MS, purpose: 'migrate' }, async (holding) => {
    for (const migration of MIGRATIONS.slice(schema().applied.length)) {
      await apply(migration, holding);
      console.log(`applied: ${migration}`);
    }
  });
} finally {
  await client.close();
}
console.log(`serving with schema version ${schema().applied.length}`);
