/**
 * The fields of a LockNamespace as rows of a table, read from its schema. What a field takes is asked of the schema itself
 * (by giving it nothing), so that the page says it in the words of the message that refuses a wrong value.
 */
import * as z from 'zod';
import { toNamespaceConfig } from '../../src/api/locknamespace/effective.ts';
import { fieldNames } from '../../src/api/locknamespace/fields.ts';
import { type LockNamespace, lockNamespaceSchema } from '../../src/api/locknamespace/schema.ts';

export interface ManifestField {
  /** `spec.semaphores[].pattern`: the brackets stand for each item of a list. */
  readonly path: string;
  /** What it takes, with its bounds. */
  readonly takes: string;
  /** As written in YAML; null: it has none. */
  readonly byDefault: string | null;
  readonly isRequired: boolean;
  readonly meaning: string;
}

/** All of them, in the order of the schema, each mapping before what is in it. */
export function manifestFields(): readonly ManifestField[] {
  return fieldsIn(lockNamespaceSchema, '');
}

function fieldsIn(schema: z.ZodObject, parent: string): ManifestField[] {
  return fieldNames(schema.shape).flatMap((name) => {
    const outer = schema.shape[name] as z.ZodType;
    const path = parent === '' ? name : `${parent}.${name}`;
    const { inner, byDefault, isRequired, meaning } = unwrapped(outer);
    const row = { path, takes: takenBy(inner), byDefault, isRequired, meaning };
    if (inner instanceof z.ZodObject) return [row, ...fieldsIn(inner, path)];
    const item = inner instanceof z.ZodArray ? inner.element : undefined;
    return item instanceof z.ZodObject ? [row, ...fieldsIn(item, `${path}[]`)] : [row];
  });
}

/** A field without the layers that say whether it may be left out, and what these layers said. */
function unwrapped(outer: z.ZodType) {
  let inner = outer;
  let byDefault: string | null = null;
  let isRequired = true;
  let meaning = outer.description;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
    isRequired = false;
    if (inner instanceof z.ZodDefault) byDefault = inYaml(inner.def.defaultValue);
    inner = inner.unwrap() as z.ZodType;
    meaning ??= inner.description;
  }
  return { inner, byDefault, isRequired, meaning: meaning ?? '' };
}

function inYaml(value: unknown): string {
  return Array.isArray(value) ? `[${value.join(', ')}]` : typeof value === 'object' ? '{}' : String(value);
}

function takenBy(schema: z.ZodType): string {
  if (schema instanceof z.ZodObject) return 'mapping';
  if (schema instanceof z.ZodRecord)
    return `${expected(schema)}, each ${expected(schema.valueType as z.ZodType)}`;
  if (!(schema instanceof z.ZodArray)) return expected(schema);
  const item = schema.element as z.ZodType;
  const each = item instanceof z.ZodObject ? '' : `, each ${expected(item)}`;
  const isSet = schema.meta()?.['x-kubernetes-list-type'] === 'set';
  return `${expected(schema)}${each}${isSet ? '; none twice' : ''}`;
}

/** The noun phrase of the schema's message about a value of the wrong type. */
function expected(schema: z.ZodType): string {
  const message = schema.safeParse(undefined).error?.issues[0]?.message ?? '';
  const phrase = /^is missing: give (.+)$/.exec(message)?.[1] ?? /^must be (.+); got /.exec(message)?.[1];
  if (phrase === undefined) throw new Error(`no field says what it takes with ${JSON.stringify(message)}`);
  return phrase.replace(/^an? /, '');
}

/** Paths of the fields that reach a lock server when its callers are not checked, as in `leasehold dev`. */
export function fieldsInForce(example: LockNamespace): ReadonlySet<string> {
  const paths = new Set<string>();
  toNamespaceConfig(watched(example, '', paths), { kind: 'unchecked' });
  return paths;
}

/** The same value; whatever is read of it goes into `paths`. */
function watched<T extends object>(value: T, path: string, paths: Set<string>): T {
  return new Proxy(value, {
    get(target, key) {
      const part: unknown = Reflect.get(target, key);
      if (typeof key === 'symbol' || typeof part === 'function') return part;
      const isItem = Array.isArray(target);
      const partPath = isItem ? `${path}[]` : path === '' ? key : `${path}.${key}`;
      if (!isItem) paths.add(partPath);
      return typeof part === 'object' && part !== null ? watched(part, partPath, paths) : part;
    },
  });
}
