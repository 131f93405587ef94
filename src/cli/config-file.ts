/** Configuration files of the long-running commands: YAML or JSON, one typed object, all that is wrong with it said at once. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { UsageError } from './errors.ts';

const ADDRESS = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):([0-9]{1,5})$/;

/** `host:port`. */
export const address = z
  .string()
  .refine((text) => Number(ADDRESS.exec(text)?.[2] ?? Number.NaN) <= 65_535, 'an address is host:port');

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `text` has passed `address`. */
export function parseAddress(text: string): Address {
  const match = ADDRESS.exec(text);
  return { host: (match?.[1] ?? '').replace(/^\[|\]$/g, ''), port: Number(match?.[2]) };
}

/**
 * Reads a configuration. `overrides`: values from the command line, as `path.to.key=value`, the value in YAML; they win over the file and are
 * checked with it.
 * @throws UsageError listing every problem, each with its field.
 */
export function loadConfig<Schema extends z.ZodType>(
  file: string,
  schema: Schema,
  problemsOf: (config: z.output<Schema>) => readonly string[],
  overrides: readonly string[] = [],
): z.output<Schema> {
  let raw: unknown;
  try {
    raw = parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${file} cannot be read: ${why}`, { cause: error });
  }
  for (const override of overrides) raw = overridden(raw, override);
  const result = schema.safeParse(raw);
  const problems = result.success
    ? problemsOf(result.data)
    : result.error.issues.map(({ path, message }) => `${path.join('.') || '(the file)'}: ${message}`);
  if (!result.success || problems.length > 0) {
    throw new UsageError([`${file} is not valid:`, ...problems].join('\n  '));
  }
  return result.data;
}

/** @throws UsageError when it is no `path.to.key=value`. */
function overridden(raw: unknown, override: string): unknown {
  const [, path, text] = /^([\w-]+(?:\.[\w-]+)*)=(.*)$/s.exec(override) ?? [];
  if (path === undefined || text === undefined) {
    throw new UsageError(`--set ${override}: it is path.to.key=value, as listen.clients=127.0.0.1:7100`);
  }
  const put = (into: unknown, [key = '', ...below]: readonly string[], value: unknown): unknown => {
    const old: Record<string, unknown> = typeof into === 'object' && into !== null ? { ...into } : {};
    return { ...old, [key]: below.length === 0 ? value : put(old[key], below, value) };
  };
  try {
    return put(raw, path.split('.'), parse(text));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`--set ${path}: the value is no YAML: ${why}`, { cause: error });
  }
}

/** A path in a configuration is relative to its file. */
export function besideConfig(file: string, path: string): string {
  return resolve(dirname(file), path);
}

/** What occurs more than once. */
export function duplicates(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, at) => values.indexOf(value) !== at))];
}
