// Makes node_modules match package-lock.json before any npm script does its work, so that every script runs in a
// fresh clone. Silent and instant when nothing is to do. Plain JavaScript without dependencies: it is the only
// file that runs on whatever Node.js the machine has (20 or newer); all else runs on the Node 26 it installs.
// `--stamp` only records that node_modules is complete (npm calls it after `npm install` and `npm ci`).
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NODE_MAJOR_MIN = 20;
const NODE_MAJOR_RUN = 26;
const LOCK_WAIT_MS_MAX = 15 * 60_000;
const LOCK_POLL_MS = 200;

/** An error that is told to the person at the terminal without a stack. */
class SetupError extends Error {}

/** @param {string} text */
function say(text) {
  process.stderr.write(`setup: ${text}\n`);
}

/** @param {string} version such as `v26.10.0` */
function majorOf(version) {
  return Number(/^v(\d+)\./.exec(version)?.[1] ?? 0);
}

/** @param {string} file @returns {string | null} */
function readOrNull(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** @param {string} root */
const stampFile = (root) => join(root, 'node_modules', '.leasehold-setup');

/** @param {string} root */
function lockfileHash(root) {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
}

/** @param {string} root */
export function isInstalled(root) {
  return readOrNull(stampFile(root)) === lockfileHash(root);
}

/** @param {string} root */
export function writeStamp(root) {
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(stampFile(root), lockfileHash(root));
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}

/**
 * One attempt to take the lock file. It is linked into place complete, so no reader ever sees it without a pid.
 * A dead owner's file is renamed away first: of several waiters only one succeeds with that.
 * @param {string} lockFile
 * @returns {boolean} whether this process now owns it
 */
export function tryLock(lockFile) {
  const own = `${lockFile}.${process.pid}`;
  const owner = Number(readOrNull(lockFile) ?? 0);
  if (owner !== 0 && !isAlive(owner)) {
    try {
      renameSync(lockFile, own);
    } catch {
      return false;
    }
  }
  writeFileSync(own, String(process.pid));
  try {
    linkSync(own, lockFile);
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

/**
 * Runs `work` while no other setup of this checkout runs.
 * @param {string} lockFile
 * @param {() => void} work
 */
function withLock(lockFile, work) {
  const giveUpAt = Date.now() + LOCK_WAIT_MS_MAX;
  for (let waits = 0; !tryLock(lockFile); waits++) {
    if (waits === 0) say(`process ${readOrNull(lockFile) ?? '?'} is installing already; waiting for it`);
    if (Date.now() > giveUpAt)
      throw new SetupError(`gave up waiting; if nothing is being installed, delete ${lockFile}`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
  }
  try {
    work();
  } finally {
    rmSync(lockFile, { force: true });
  }
}

/** @param {string} root */
function install(root) {
  const why = existsSync(join(root, 'node_modules'))
    ? 'package-lock.json has changed'
    : 'node_modules is missing';
  say(`${why}: running npm ci (about a minute the first time)`);
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const result = spawnSync('npm', args, { cwd: root, stdio: ['ignore', process.stderr, process.stderr] });
  if (result.error) throw new SetupError(`npm could not be started: ${result.error.message}`);
  if (result.status !== 0)
    throw new SetupError(`npm ci failed (exit ${result.status ?? result.signal}); its message is above`);
  record(root);
  say('done');
}

/** The binary is an optional dependency, so npm does not fail without it. @param {string} root */
function requireRunnableNode(root) {
  const result = spawnSync(join(root, 'node_modules', '.bin', 'node'), ['--version'], { encoding: 'utf8' });
  if (majorOf(result.stdout ?? '') >= NODE_MAJOR_RUN || majorOf(process.version) >= NODE_MAJOR_RUN) return;
  throw new SetupError(
    `npm installed no Node.js ${NODE_MAJOR_RUN} for ${process.platform}-${process.arch}; ` +
      `put Node.js ${NODE_MAJOR_RUN} or newer on PATH and run this again`,
  );
}

/** @param {string} root */
function record(root) {
  requireRunnableNode(root);
  writeStamp(root);
}

/** @param {string} root */
function setup(root) {
  if (majorOf(process.version) < NODE_MAJOR_MIN) {
    throw new SetupError(
      `Node.js ${NODE_MAJOR_MIN} or newer is needed to set up; this is ${process.version}`,
    );
  }
  if (isInstalled(root)) return;
  withLock(join(root, '.leasehold-setup.lock'), () => {
    if (!isInstalled(root)) install(root);
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  try {
    if (process.argv.includes('--stamp')) record(root);
    else setup(root);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}
