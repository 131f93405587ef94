/** Folders that a process needs: made, or refused with the reason in words. */
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const OWNER_ONLY = 0o700;

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this account may not write there',
  EPERM: 'this account may not write there',
  EROFS: 'its file system is mounted read-only',
  ENOSPC: 'there is no space left on its device',
  EDQUOT: 'the disk quota of this account is used up',
  ENAMETOOLONG: 'a part of the path is too long',
  ENOENT: 'its file system takes no new folders',
  ENOTDIR: 'a file is in its place',
  EEXIST: 'a file is in its place',
  ELOOP: 'its symbolic links go in a circle',
};

/** What kept a folder from being made or written to. */
export class FolderError extends Error {
  constructor(message: string, options: ErrorOptions) {
    super(message, options);
    this.name = 'FolderError';
  }
}

function reason(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  return REASONS[code ?? ''] ?? message;
}

/**
 * Makes the folder, and those above it, readable by their owner only, and sees that it can be written to. Returns what was made, outermost
 * first. `mkdir` of Node.js with `recursive` never returns for a folder that a parent does not take (`/proc/x`).
 * @throws FolderError
 */
export function makeFolder(path: string): readonly string[] {
  const folder = resolve(path);
  const missing = missingFrom(folder);
  for (const one of missing) {
    attempt(folder, one, () => {
      try {
        mkdirSync(one, { mode: OWNER_ONLY });
      } catch (error) {
        // Somebody else was quicker.
        if (!isFolder(one)) throw error;
      }
    });
  }
  attempt(folder, folder, () => accessSync(folder, constants.W_OK | constants.X_OK));
  return missing;
}

/** Folders that are to be made, outermost first. */
function missingFrom(folder: string): readonly string[] {
  const missing: string[] = [];
  for (let at = folder; !attempt(folder, at, () => isFolder(at)); at = dirname(at)) missing.unshift(at);
  return missing;
}

/** Throws when something else is there. */
function isFolder(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (found.isDirectory()) return true;
  throw Object.assign(new Error('not a folder'), { code: 'ENOTDIR' });
}

function attempt<T>(folder: string, at: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const where = at === folder ? '' : ` (${at})`;
    throw new FolderError(`${folder} cannot be made or written to: ${reason(error)}${where}`, {
      cause: error,
    });
  }
}
