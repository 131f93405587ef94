/**
 * From files and folders to all LockNamespaces in them, or to all errors over all files: a set that is half right is
 * never served, because what is missing from it would look removed, and removing a namespace ends its locks.
 */
import { createHash } from 'node:crypto';
import { open, readdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { formatPlace, type ManifestError, type ManifestNotice } from './format.ts';
import { parseManifests, type SourcedLockNamespace } from './parse.ts';
import { FILE_BYTES_MAX } from './yaml-source.ts';

const MANIFEST_FILES_MAX = 1_000;
const FOLDERS_MAX = 1_000;
const EXTENSION = /\.(yaml|yml|json)$/;

export interface LoadOptions {
  /** Files, and folders whose `*.yaml`, `*.yml` and `*.json` are read in order of their names. */
  readonly paths: readonly string[];
  /** Also folders inside folders; hidden ones and symbolic links to folders are left out. Default: false. */
  readonly recursive?: boolean;
}

export type LoadResult = (
  | { readonly ok: true; readonly namespaces: readonly SourcedLockNamespace[] }
  | { readonly ok: false; readonly errors: readonly ManifestError[] }
) & {
  readonly notices: readonly ManifestNotice[];
  /** Of all that was read. Equal hashes: nothing changed. */
  readonly contentHash: string;
};

/** A file's bytes (the first `FILE_BYTES_MAX` + 1 of them), or why it could not be read. */
interface SourceFile {
  readonly file: string;
  readonly content: Uint8Array | { readonly problem: string };
}

export interface ManifestSources {
  readonly files: readonly SourceFile[];
  /** Every folder in which a change may matter. */
  readonly folders: readonly string[];
  readonly contentHash: string;
}

/** Reads and checks everything. Never rejects: what cannot be read is an error of its file (at line 1). */
export async function loadManifests(options: LoadOptions): Promise<LoadResult> {
  return parseSources(options, await readSources(options));
}

/** The reading half of `loadManifests`; cheap enough to be repeated every few seconds. Never rejects. */
export async function readSources({ paths, recursive = false }: LoadOptions): Promise<ManifestSources> {
  const files = new Map<string, SourceFile>();
  const folders = new Set<string>();
  for (const path of paths) {
    const found = await listFiles(path, recursive);
    for (const folder of found.folders) folders.add(folder);
    for (const unlisted of found.unlisted) files.set(resolve(unlisted.file), unlisted);
    for (const file of found.files) {
      if (files.has(resolve(file))) continue;
      const isOverLimit = files.size >= MANIFEST_FILES_MAX;
      const content = isOverLimit
        ? { problem: `more than ${MANIFEST_FILES_MAX} files: join some` }
        : await read(file);
      files.set(resolve(file), { file, content });
      if (isOverLimit) break;
    }
  }
  const all = [...files.values()];
  return { files: all, folders: [...folders], contentHash: hashOf(all) };
}

/** The checking half of `loadManifests`. Pure. */
export function parseSources({ paths }: LoadOptions, { files, contentHash }: ManifestSources): LoadResult {
  const parsed = files.map(({ file, content }) => {
    if (content instanceof Uint8Array) return parseManifests(content, file);
    return { namespaces: [], errors: [fileError(file, content.problem)], notices: [] };
  });
  const namespaces = parsed.flatMap((result) => result.namespaces);
  const notices = parsed.flatMap((result) => result.notices);
  const errors = [...parsed.flatMap((result) => result.errors), ...repeatedAliases(namespaces)];
  if (errors.length === 0 && namespaces.length === 0) {
    errors.push(
      fileError(paths.join(', '), 'no LockNamespace was found in *.yaml, *.yml or *.json here: add one'),
    );
  }
  return { ...(errors.length > 0 ? { ok: false, errors } : { ok: true, namespaces }), notices, contentHash };
}

/** The alias of a LockNamespace is its name alone, so two of one name cannot be told apart by applications. */
function repeatedAliases(namespaces: readonly SourcedLockNamespace[]): ManifestError[] {
  const first = new Map<string, SourcedLockNamespace>();
  const errors: ManifestError[] = [];
  for (const each of namespaces) {
    const { name, namespace } = each.lockNamespace.metadata;
    const earlier = first.get(name);
    if (earlier === undefined) {
      first.set(name, each);
      continue;
    }
    const place = formatPlace(earlier.source);
    const other = `${earlier.lockNamespace.metadata.namespace}/${name}`;
    const message = `name ${name} (of ${namespace}/${name}) is taken by ${other} at ${place}: the name is the alias under which applications lock, so rename or remove one`;
    errors.push({ ...each.source, path: 'metadata.name', message });
  }
  return errors;
}

/** Of what nothing was read: there is no place in it. */
function fileError(file: string, message: string): ManifestError {
  return { file, document: 1, line: 0, column: 0, path: '', message };
}

interface Listing {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  /** Folders whose contents cannot be known: taken for empty ones, all that they hold would look removed. */
  readonly unlisted: readonly SourceFile[];
}

async function listFiles(path: string, recursive: boolean): Promise<Listing> {
  try {
    if (!(await stat(path)).isDirectory()) return { files: [path], folders: [dirname(path)], unlisted: [] };
  } catch {
    // Whatever is wrong with it is said when it is read.
    return { files: [path], folders: [dirname(path)], unlisted: [] };
  }
  const files: string[] = [];
  const unlisted: SourceFile[] = [];
  const folders = [path];
  // The list grows while it is walked.
  for (const folder of folders) {
    const entries = await entriesOf(folder);
    if ('problem' in entries) {
      unlisted.push({ file: folder, content: entries });
      continue;
    }
    for (const entry of entries) {
      const inside = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (recursive && folders.length < FOLDERS_MAX) folders.push(inside);
      } else if (EXTENSION.test(entry.name) && files.length <= MANIFEST_FILES_MAX) files.push(inside);
    }
  }
  return { files, folders, unlisted };
}

/** In order of names. Hidden ones are left out: editors keep their half-written copies there. */
async function entriesOf(folder: string) {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    return problemOf(error);
  }
}

async function read(file: string): Promise<SourceFile['content']> {
  try {
    if (!(await stat(file)).isFile()) return { problem: 'cannot be read: it is neither a file nor a folder' };
    await using handle = await open(file);
    const buffer = new Uint8Array(FILE_BYTES_MAX + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.slice(0, length);
  } catch (error) {
    return problemOf(error);
  }
}

function problemOf(error: unknown): { readonly problem: string } {
  const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
  return { problem: `cannot be read: ${code === 'ENOENT' ? 'there is no such file or folder' : code}` };
}

function hashOf(files: readonly SourceFile[]): string {
  const hash = createHash('sha256');
  for (const { file, content } of files) {
    const bytes = content instanceof Uint8Array ? content : new TextEncoder().encode(`?${content.problem}`);
    hash.update(`${JSON.stringify(file)} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest('hex');
}
