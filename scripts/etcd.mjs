// A real etcd for tests: built once from its Go module, kept in the cache folder of this user. Version and checksums of
// everything in it stand in scripts/etcd (go.mod, go.sum), so that every machine tests against the same bytes of source.
// `node scripts/etcd.mjs` prints the path of the binary.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from './processes.mjs';

const MODULE = join(ROOT, 'scripts', 'etcd');
const TELL_EVERY_MS = 30_000;
const SERVER_LINE = /^require go\.etcd\.io\/etcd\/server\/v3 v([0-9.]+)$/m;

/** The version that scripts/etcd/go.mod pins, without a `v`. */
export function etcdVersion() {
  const version = SERVER_LINE.exec(readFileSync(join(MODULE, 'go.mod'), 'utf8'))?.[1];
  if (version === undefined) throw new Error('scripts/etcd/go.mod requires no go.etcd.io/etcd/server/v3');
  return version;
}

function cacheFolder() {
  const configured = process.env.XDG_CACHE_HOME;
  const base = configured === undefined || configured === '' ? join(homedir(), '.cache') : configured;
  return join(base, 'leasehold');
}

/** @param {string} binary where the result goes @returns {Promise<void>} */
function build(binary) {
  // `-mod=readonly`: nothing that go.sum does not name gets in. Without cgo it runs wherever it is copied.
  const args = [
    'build',
    '-mod=readonly',
    '-trimpath',
    '-buildvcs=false',
    '-ldflags=-s -w',
    '-o',
    binary,
    '.',
  ];
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  const child = spawn('go', args, { cwd: MODULE, env, stdio: ['ignore', process.stderr, process.stderr] });
  return new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new Error(`building etcd needs Go (https://go.dev): ${error.message}`, { cause: error })),
    );
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`go build of etcd failed (exit ${code})`)),
    );
  });
}

/**
 * The path of the binary; builds it if it is not there yet. Callers at the same time build it twice and harm nobody: it
 * appears under its name complete or not at all.
 * @returns {Promise<string>}
 */
export async function ensureEtcd() {
  const version = etcdVersion();
  const folder = cacheFolder();
  const binary = join(folder, `etcd-${version}`);
  if (existsSync(binary)) return binary;
  const unfinished = `${binary}.${process.pid}`;
  process.stderr.write(`etcd: building ${version} into ${folder} (a few minutes, once)\n`);
  const startedMs = Date.now();
  const seconds = () => Math.round((Date.now() - startedMs) / 1_000);
  const telling = setInterval(
    () => process.stderr.write(`etcd: still building (${seconds()} s)\n`),
    TELL_EVERY_MS,
  );
  mkdirSync(folder, { recursive: true });
  try {
    await build(unfinished);
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, binary);
  } finally {
    clearInterval(telling);
    rmSync(unfinished, { force: true });
  }
  process.stderr.write(`etcd: built in ${seconds()} s\n`);
  return binary;
}

if (import.meta.main) console.log(await ensureEtcd());
