/**
 * From what people name (a log's folder, or the data folder of `leasehold dev`) to the folder of one log.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../errors.ts';

/** The file that makes a folder the folder of a log. */
const LOG_FILE = 'log.db';

/** Throws UsageError when there is no log, or more than one and `alias` does not say which. */
export function findLog(folder: string, alias: string | undefined): string {
  if (!existsSync(folder)) throw new UsageError(`there is no folder ${folder}`);
  if (existsSync(join(folder, LOG_FILE))) return folder;
  const logs = readdirSync(folder).filter((name) => existsSync(join(folder, name, LOG_FILE)));
  const matching = alias === undefined ? logs : logs.filter((name) => aliasOf(name) === alias);
  const [only] = matching;
  if (only !== undefined && matching.length === 1) return join(folder, only);
  if (logs.length === 0)
    throw new UsageError(`${folder} is neither the folder of a log nor does it hold any`);
  const list = logs.map(aliasOf).sort().join(', ');
  if (alias === undefined)
    throw new UsageError(`${folder} holds several logs: choose with --namespace: ${list}`);
  // Two Kubernetes namespaces may have had a LockNamespace of one name, one after the other.
  if (matching.length > 1)
    throw new UsageError(`name the folder of one of these logs: ${matching.join(', ')}`);
  throw new UsageError(`${folder} holds no log of ${alias}; it holds: ${list}`);
}

/** Folders are named `<Kubernetes namespace>.<alias>`, and the former has no dot. */
function aliasOf(folderName: string): string {
  return folderName.slice(folderName.indexOf('.') + 1);
}
