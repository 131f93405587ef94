/**
 * Findings of manifests, for people (`file:line:col path: message`, which editors and CI make clickable) and as JSON.
 */

/** Where something stands in a manifest file. `document` counts from 1, as do `line` and `column` (in UTF-16 units); line 0: the file as a whole, which was not read. */
export interface ManifestPosition {
  readonly file: string;
  readonly document: number;
  readonly line: number;
  readonly column: number;
}

/** One finding. `path` is for example `spec.lease.ttl`; empty where the whole document or file is meant. */
export interface ManifestError extends ManifestPosition {
  readonly path: string;
  /** A sentence that names the field, the limit and the way out. */
  readonly message: string;
}

/** Something that stops nothing but that its author should know, for example a skipped object. */
export type ManifestNotice = ManifestError;

/** `payouts.yaml:9:10`, or `payouts.yaml:` when none of it was read. */
export function formatPlace({ file, line, column }: ManifestPosition): string {
  return line === 0 ? `${printable(file)}:` : `${printable(file)}:${line}:${column}`;
}

/** `payouts.yaml:9:10 spec.lease.ttl: ttl must be ...` */
function formatFinding(finding: ManifestError): string {
  const { path, message } = finding;
  const place = formatPlace(finding);
  return printable(path === '' ? `${place} ${message}` : `${place} ${path}: ${message}`);
}

/** One line for each finding, ordered by file and place; no line break at the end. */
export function formatFindings(findings: readonly ManifestError[]): string {
  return [...findings].sort(byPlace).map(formatFinding).join('\n');
}

/** The same as JSON: one array, two spaces of indentation, the fields of `ManifestError`. */
export function findingsToJson(findings: readonly ManifestError[]): string {
  const rows = [...findings].sort(byPlace).map(({ file, document, line, column, path, message }) => {
    return { file, document, line, column, path, message };
  });
  return JSON.stringify(rows, null, 2);
}

/** `spec.consumers[0].namespace`; a key that is no plain word is quoted: `metadata.labels["example.org/team"]`. */
export function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    if (!/^[A-Za-z_][-A-Za-z0-9_]{0,99}$/.test(key))
      return `${text}[${printable(JSON.stringify(key.slice(0, 100)))}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}

/** Without the characters that could move a terminal's cursor or reorder a line. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, '?');
}

export function byPlace(a: ManifestPosition, b: ManifestPosition): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
