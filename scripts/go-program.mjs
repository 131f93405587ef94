// Programs of ours that are written in Go: built once and kept in the cache folder of this user. What their go.mod and go.sum
// name is what they are built of, so that every machine runs the same bytes of source.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const TELL_EVERY_MS = 30_000;

function cacheFolder() {
  const configured = process.env.XDG_CACHE_HOME;
  const base = configured === undefined || configured === '' ? join(homedir(), '.cache') : configured;
  return join(base, 'leasehold');
}

/**
 * @param {{ name: string, folder: string }} program
 * @param {string} binary where the result goes
 * @returns {Promise<void>}
 */
function build({ name, folder }, binary) {
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
  const child = spawn('go', args, { cwd: folder, env, stdio: ['ignore', process.stderr, process.stderr] });
  return new Promise((resolve, reject) => {
    child.on('error', (error) =>
      reject(new Error(`building ${name} needs Go (https://go.dev): ${error.message}`, { cause: error })),
    );
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`go build of ${name} failed (exit ${code})`)),
    );
  });
}

/**
 * The path of the binary; builds it if it is not there yet. Callers at the same time build it twice and harm nobody: it
 * appears under its name complete or not at all.
 * @param {{ name: string, version: string, folder: string }} program `folder`: with its go.mod
 * @returns {Promise<string>}
 */
export async function ensureGoProgram(program) {
  const { name, version } = program;
  const folder = cacheFolder();
  const binary = join(folder, `${name}-${version}`);
  if (existsSync(binary)) return binary;
  const unfinished = `${binary}.${process.pid}`;
  process.stderr.write(`${name}: building ${version} into ${folder} (a few minutes, once)\n`);
  const startedMs = Date.now();
  const seconds = () => Math.round((Date.now() - startedMs) / 1_000);
  const telling = setInterval(
    () => process.stderr.write(`${name}: still building (${seconds()} s)\n`),
    TELL_EVERY_MS,
  );
  mkdirSync(folder, { recursive: true });
  try {
    await build(program, unfinished);
    chmodSync(unfinished, 0o755);
    renameSync(unfinished, binary);
  } finally {
    clearInterval(telling);
    rmSync(unfinished, { force: true });
  }
  process.stderr.write(`${name}: built in ${seconds()} s\n`);
  return binary;
}
