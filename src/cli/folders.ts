/** Folders and files that options and configurations name. */
import { readdirSync } from 'node:fs';
import { FolderError, makeFolder } from '../platform/folders.ts';
import { UsageError } from './errors.ts';

/** How many names of what is in the way are told. */
const NAMES_TOLD_MAX = 3;

const FILE_PROBLEMS: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EISDIR', 'it is a folder'],
  ['ENOTDIR', 'a part of its path is no folder'],
  ['EACCES', 'this user may not read it'],
]);

/** Why a file cannot be read, for people. `error`: what reading it threw. */
export function whyUnreadable(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return FILE_PROBLEMS.get('code' in error ? error.code : undefined) ?? error.message;
}

/** Makes it if need be. `field`: the option, or the key of a configuration. @throws UsageError it cannot be used */
export function usableFolder(field: string, path: string): void {
  try {
    makeFolder(path);
  } catch (error) {
    if (!(error instanceof FolderError)) throw error;
    throw new UsageError(`${field}: ${error.message}`, { cause: error, details: { field } });
  }
}

/** So that files of somebody else are not written over. @throws UsageError it holds other names than `ours` */
export function refuseForeignFiles(field: string, path: string, ours: readonly string[]): void {
  const foreign = readdirSync(path).filter((name) => !ours.includes(name));
  if (foreign.length === 0) return;
  const more = foreign.length > NAMES_TOLD_MAX ? `, and ${foreign.length - NAMES_TOLD_MAX} more` : '';
  const told = `${foreign.slice(0, NAMES_TOLD_MAX).join(', ')}${more}`;
  throw new UsageError(`${field}: ${path} holds other files (${told}): name a new or an empty folder`, {
    details: { field },
  });
}
