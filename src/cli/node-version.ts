/**
 * Which commands need a newer Node.js than the package as a whole. Those that serve or read a log use node:sqlite and other things
 * that Node.js 20 does not have; said before anything of theirs is loaded, since loading it is what would fail.
 */

const NEEDS_NEWER = ['dev', 'group', 'server', 'sidecar', 'log'];
const MAJOR_MIN = 22;
const MINOR_MIN = 13;

/**
 * Why a command cannot run here; null: it can. `command` is the first word after `leasehold`, `version` as `v20.1.0`.
 */
export function whyNotOn(version: string, command: string): string | null {
  if (!NEEDS_NEWER.includes(command)) return null;
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  if (major > MAJOR_MIN || (major === MAJOR_MIN && minor >= MINOR_MIN)) return null;
  return `this command needs Node.js ${MAJOR_MIN}.${MINOR_MIN} or newer (26 is what we test with); this is ${version}`;
}
