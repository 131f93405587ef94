// A real etcd for tests: built once from its Go module, kept in the cache folder of this user. Version and checksums of
// everything in it stand in scripts/etcd (go.mod, go.sum), so that every machine tests against the same bytes of source.
// `node scripts/etcd.mjs` prints the path of the binary.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureGoProgram } from './go-program.mjs';
import { ROOT } from './processes.mjs';

const MODULE = join(ROOT, 'scripts', 'etcd');
const SERVER_LINE = /^require go\.etcd\.io\/etcd\/server\/v3 v([0-9.]+)$/m;

/** The version that scripts/etcd/go.mod pins, without a `v`. */
export function etcdVersion() {
  const version = SERVER_LINE.exec(readFileSync(join(MODULE, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error('scripts/etcd/go.mod requires no go.etcd.io/etcd/server/v3');
  return version;
}

/**
 * The path of the binary; builds it if it is not there yet.
 * @returns {Promise<string>}
 */
export function ensureEtcd() {
  return ensureGoProgram({ name: 'etcd', version: etcdVersion(), folder: MODULE });
}

if (import.meta.main) console.log(await ensureEtcd());
