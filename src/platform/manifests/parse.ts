/**
 * From the text of a manifest file to its LockNamespaces, or to everything that is wrong with it, at once.
 *
 * What else may stand in a file: empty documents; objects of other API groups (skipped with a notice, so that one folder
 * can serve `kubectl apply` and `leasehold dev`); the other kinds of our own group (likewise); lists as `kubectl get -o yaml`
 * prints them. An unknown kind of our own group is an error: it is most probably a misspelt LockNamespace.
 */

import {
  API_GROUP,
  API_VERSION,
  LOCK_NAMESPACE_KIND,
  type LockNamespace,
  OTHER_KINDS,
} from '../../api/locknamespace/schema.ts';
import { type FieldPath, type Problem, validateLockNamespace } from '../../api/locknamespace/validate.ts';
import { nearest } from '../../api/nearest.ts';
import {
  byPlace,
  formatPath,
  type ManifestError,
  type ManifestNotice,
  type ManifestPosition,
} from './format.ts';
import { FILE_BYTES_MAX, placesIn, readYaml, type YamlDocument, type YamlFinding } from './yaml-source.ts';

/** More findings than this help nobody; the last one then says that some were left out. */
export const FINDINGS_PER_FILE_MAX = 200;

export interface SourcedLockNamespace {
  readonly lockNamespace: LockNamespace;
  /** Where its name stands. */
  readonly source: ManifestPosition;
}

export interface ParsedManifests {
  /** Those of documents without errors, in the order of the file. */
  readonly namespaces: readonly SourcedLockNamespace[];
  /** Ordered by place. Every one has a line. */
  readonly errors: readonly ManifestError[];
  readonly notices: readonly ManifestNotice[];
}

/** What one object of a document gives: exactly one of the three kinds of results. */
interface ObjectResult {
  readonly lockNamespace?: LockNamespace;
  readonly problems: readonly Problem[];
  readonly notice?: string;
}

/** `source` is the file's content, `file` its name for messages. Never throws; the work is bounded for any input. */
export function parseManifests(source: string | Uint8Array, file: string): ParsedManifests {
  const decoded = decode(source);
  if (decoded.problem !== undefined) {
    const place = placesIn(decoded.text)(decoded.offset);
    return {
      namespaces: [],
      errors: [{ file, document: 1, ...place, path: '', message: decoded.problem }],
      notices: [],
    };
  }
  const placeOf = placesIn(decoded.text);
  const results = readYaml(decoded.text).map((document, index) =>
    parseDocument(document, (offset) => ({ file, document: index + 1, ...placeOf(offset) })),
  );
  return {
    namespaces: results.flatMap(({ namespaces }) => namespaces),
    errors: bounded(results.flatMap(({ errors }) => errors).sort(byPlace)),
    notices: bounded(results.flatMap(({ notices }) => notices).sort(byPlace)),
  };
}

type Decoded = { readonly text: string; readonly offset: number; readonly problem?: string };

function decode(source: string | Uint8Array): Decoded {
  const tooLarge = `a manifest file must be at most ${FILE_BYTES_MAX} bytes: split it`;
  if (source.length > FILE_BYTES_MAX) return { text: '', offset: 0, problem: tooLarge };
  if (typeof source === 'string') return { text: source, offset: 0 };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true }).decode(source), offset: 0 };
  } catch {
    const text = new TextDecoder().decode(source);
    const offset = Math.max(0, text.indexOf('\ufffd'));
    return { text, offset, problem: 'a manifest must be UTF-8 text: save it as UTF-8' };
  }
}

function parseDocument(
  document: YamlDocument,
  placeOf: (offset: number) => ManifestPosition,
): ParsedManifests {
  const toError = ({ offset, path, message }: YamlFinding): ManifestError => {
    return { ...placeOf(offset), path: formatPath(path), message };
  };
  const namespaces: SourcedLockNamespace[] = [];
  const errors = document.findings.map(toError);
  const notices: ManifestNotice[] = [];
  for (const { path: base, value } of document.value === undefined ? [] : objectsOf(document.value)) {
    const { lockNamespace, problems, notice } = readObject(value);
    for (const { at, path, message } of problems) {
      const full = [...base, ...path];
      errors.push(toError({ offset: document.locate(full, at), path: full, message }));
    }
    if (notice !== undefined) {
      const path = [...base, 'kind'];
      notices.push(toError({ offset: document.locate(path, 'key'), path, message: notice }));
    }
    if (lockNamespace !== undefined) {
      const source = placeOf(document.locate([...base, 'metadata', 'name'], 'value'));
      namespaces.push({ lockNamespace, source });
    }
  }
  return { namespaces: errors.length === 0 ? namespaces : [], errors, notices };
}

/** The objects of a document: none, one, or the items of a list. */
function objectsOf(value: unknown): readonly { readonly path: FieldPath; readonly value: unknown }[] {
  if (value === null) return [];
  const { apiVersion, kind, items } = isMapping(value) ? value : {};
  const isList =
    (apiVersion === 'v1' && kind === 'List') ||
    (apiVersion === API_VERSION && kind === `${LOCK_NAMESPACE_KIND}List`);
  if (!isList || !Array.isArray(items)) return [{ path: [], value }];
  return items.map((item: unknown, index) => ({ path: ['items', index], value: item }));
}

function readObject(value: unknown): ObjectResult {
  if (!isMapping(value)) {
    const message = 'a manifest must be a mapping with apiVersion, kind, metadata and spec';
    return { problems: [{ at: 'value', path: [], message }] };
  }
  const { apiVersion, kind } = value;
  const isOurs = typeof apiVersion === 'string' && apiVersion.split('/')[0] === API_GROUP;
  if (typeof kind === 'string' && kind !== LOCK_NAMESPACE_KIND) {
    if (isOurs && OTHER_KINDS.includes(kind)) {
      return { problems: [], notice: `${kind} is skipped: it has a meaning in a cluster only` };
    }
    if (isOurs && nearest(kind, [LOCK_NAMESPACE_KIND]) === undefined) return unknownKind(kind);
    if (!isOurs && typeof apiVersion === 'string' && apiVersion !== '' && kind !== '') {
      return {
        problems: [],
        notice: `an object of another API group (${shortKind(apiVersion, kind)}) is skipped`,
      };
    }
  }
  if (isOurs || kind === LOCK_NAMESPACE_KIND) {
    const validation = validateLockNamespace(value);
    return validation.ok
      ? { lockNamespace: validation.lockNamespace, problems: [] }
      : { problems: validation.problems };
  }
  const message = `apiVersion and kind must be given, for example apiVersion: ${API_VERSION} and kind: ${LOCK_NAMESPACE_KIND}`;
  return { problems: [{ at: 'missing', path: [], message }] };
}

function unknownKind(kind: string): ObjectResult {
  const known = [LOCK_NAMESPACE_KIND, ...OTHER_KINDS];
  const near = nearest(kind, known);
  const wayOut = near === undefined ? `use one of ${known.join(', ')}` : `did you mean ${near}?`;
  const message = `kind must be a kind of ${API_GROUP}; got ${shortKind(kind)}: ${wayOut}`;
  return { problems: [{ at: 'value', path: ['kind'], message }] };
}

function shortKind(...parts: readonly string[]): string {
  return JSON.stringify(parts.map((part) => part.slice(0, 60)).join(' '));
}

function bounded(findings: readonly ManifestError[]): readonly ManifestError[] {
  const last = findings[FINDINGS_PER_FILE_MAX];
  if (last === undefined) return findings;
  const message = 'there is more in this file that is not shown: mend this first';
  return [...findings.slice(0, FINDINGS_PER_FILE_MAX), { ...last, path: '', message }];
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
