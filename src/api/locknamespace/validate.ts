/**
 * From any value to a LockNamespace or to everything that is wrong with it, in one go: the schema for each field by itself,
 * the rules that span fields, and a suggestion for each unknown field.
 */
import * as z from 'zod';
import { nearest } from '../nearest.ts';
import { fieldNames } from './fields.ts';
import { brokenRules, type FieldPath, type Problem } from './rules.ts';
import { type LockNamespace, lockNamespaceSchema } from './schema.ts';

export type { FieldPath, Problem } from './rules.ts';

export type Validation =
  | { readonly ok: true; readonly lockNamespace: LockNamespace }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** More than this in one manifest are not looked for: whoever mends these runs it again. */
const PROBLEMS_MAX = 200;

type Issue = z.core.$ZodIssue;

/**
 * Checks `manifest` (the parsed YAML or JSON of one object, not nested without end). Pure; throws for no such data.
 * At most 200 problems.
 */
export function validateLockNamespace(manifest: unknown): Validation {
  const written = withoutNulls(manifest);
  const result = lockNamespaceSchema.safeParse(written);
  const issues = result.success ? [] : result.error.issues;
  const problems = withoutMisspelt([
    ...openedByNull(manifest),
    ...brokenRules(written),
    ...issues.flatMap((issue) => toProblems(issue, written)),
  ]);
  if (!result.success || problems.length > 0)
    return { ok: false, problems: withoutRepeats(problems).slice(0, PROBLEMS_MAX) };
  const { apiVersion, kind, metadata, spec } = result.data;
  const { name, namespace, labels, annotations } = metadata;
  return {
    ok: true,
    lockNamespace: { apiVersion, kind, metadata: { name, namespace, labels, annotations }, spec },
  };
}

/** A field without a value (`limits:`) counts as not written, as in Kubernetes. */
function withoutNulls(value: unknown): unknown {
  // Zero has no sign here: `-0` would not survive JSON, and replicas would disagree about it.
  if (value === 0) return 0;
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const kept = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutNulls(item)]));
}

/** The one field where a forgotten value would open the namespace to more people than before. */
function openedByNull(manifest: unknown): Problem[] {
  const spec = child(manifest, 'spec');
  if (child(spec, 'consumers') !== null) return [];
  const message =
    'consumers has no value, which would let in all accounts of its own namespace: list the consumers, or remove the line';
  return [{ at: 'value', path: ['spec', 'consumers'], message }];
}

function toProblems(issue: Issue, manifest: unknown): Problem[] {
  const path = issue.path.filter((key) => typeof key !== 'symbol');
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.slice(0, PROBLEMS_MAX).map((key) => unknownField(path, key));
  }
  const message = `${nameOf(path)} ${issue.message}`;
  if (issue.code === 'custom' && issue.params?.at === 'key') return [{ at: 'key', path, message }];
  const isMissing = path.length > 0 && path.reduce<unknown>(child, manifest) === undefined;
  return [{ at: isMissing ? 'missing' : 'value', path, message }];
}

/** A field as messages call it: its own name, with its place in a list. */
function nameOf(path: FieldPath): string {
  const last = path.findLastIndex((key) => typeof key === 'string');
  if (last === -1) return 'the manifest';
  const indexes = path.slice(last + 1).map((index) => `[${index}]`);
  return `${path[last]}${indexes.join('')}`;
}

interface UnknownField extends Problem {
  readonly meant?: FieldPath;
}

function unknownField(parent: FieldPath, key: string): UnknownField {
  const known = fieldsOf(schemaAt(parent));
  const near = nearest(key, known);
  const elsewhere = near === undefined ? placesOf(key) : [];
  const path = [...parent, key];
  const unknown = `${key} is not a field of ${parent.length === 0 ? 'a LockNamespace' : nameOf(parent)}`;
  if (near !== undefined) {
    return { at: 'key', path, message: `${unknown}: did you mean ${near}?`, meant: [...parent, near] };
  }
  if (elsewhere.length > 0)
    return { at: 'key', path, message: `${unknown}: did you mean ${elsewhere.join(' or ')}?` };
  return { at: 'key', path, message: `${unknown}: remove it, or use one of ${known.join(', ')}` };
}

/** That a field is missing need not be said where its misspelt form was just found. */
function withoutMisspelt(problems: readonly UnknownField[]): readonly Problem[] {
  const meant = new Set(problems.flatMap((problem) => (problem.meant ? [problem.meant.join('\n')] : [])));
  return problems.filter((problem) => problem.at !== 'missing' || !meant.has(problem.path.join('\n')));
}

function withoutRepeats(problems: readonly Problem[]): readonly Problem[] {
  const byText = new Map(
    problems.map(({ at, path, message }) => [JSON.stringify([path, message]), { at, path, message }]),
  );
  return [...byText.values()];
}

/** The schema of the field at `path`, without its wrappers; undefined where the schema knows no fields. */
function schemaAt(path: FieldPath): z.ZodType | undefined {
  let schema: z.ZodType | undefined = lockNamespaceSchema;
  for (const key of path) {
    if (schema instanceof z.ZodObject) schema = unwrapped(schema.shape[key]);
    else if (schema instanceof z.ZodArray) schema = unwrapped(schema.element as z.ZodType);
    else return undefined;
  }
  return schema;
}

function unwrapped(schema: z.ZodType | undefined): z.ZodType | undefined {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}

function fieldsOf(schema: z.ZodType | undefined): readonly string[] {
  return schema instanceof z.ZodObject ? fieldNames(schema.shape) : [];
}

/** Where a field of this name exists in the specification: people often know the field but not its section. */
function placesOf(key: string): string[] {
  const places: string[] = [];
  const visit = (schema: z.ZodType | undefined, path: string): void => {
    for (const name of fieldsOf(schema)) {
      const here = `${path}.${name}`;
      if (name.toLowerCase() === key.toLowerCase()) places.push(here);
      if (schema instanceof z.ZodObject) visit(unwrapped(schema.shape[name]), here);
    }
  };
  visit(schemaAt(['spec']), 'spec');
  return places;
}

function child(parent: unknown, key: string | number): unknown {
  if (typeof parent !== 'object' || parent === null) return undefined;
  return Object.hasOwn(parent, key) ? (parent as Record<string | number, unknown>)[key] : undefined;
}
