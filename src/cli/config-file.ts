/** Configuration files of the long-running commands: YAML or JSON, one typed object, all that is wrong with it said at once. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import * as z from 'zod';
import { issueLines, mustBe, wordsOf } from '../api/issues.ts';
import { UsageError } from './errors.ts';
import { whyUnreadable } from './folders.ts';

const ADDRESS = /^(\[[0-9a-fA-F:]+\]|[^:\s]+):([0-9]{1,5})$/;

/** `host:port`. */
export const address = z
  .string()
  .refine((text) => Number(ADDRESS.exec(text)?.[2] ?? Number.NaN) <= 65_535, mustBe('an address, host:port'));

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
    throw new UsageError(`${file} cannot be read: ${withoutText(whyUnreadable(error))}`, { cause: error });
  }
  if (typeof raw === 'object' && raw !== null && 'apiVersion' in raw && 'kind' in raw) {
    const kind = String(raw.kind);
    throw new UsageError(`${file} is a ${kind} and no configuration (docs/CONFIGURATION.md shows one)`);
  }
  const badOverrides: string[] = [];
  for (const override of overrides) {
    const put = overridden(raw, override);
    if ('problem' in put) badOverrides.push(put.problem);
    else raw = put.value;
  }
  const result = schema.safeParse(raw, { error: wordsOf });
  const problems = result.success ? problemsOf(result.data) : issueLines(schema, result.error.issues);
  if (result.success && problems.length === 0 && badOverrides.length === 0) return result.data;
  const all = [...badOverrides, ...problems.map((problem) => withOrigin(problem, overrides))];
  const message = [`${file} is not valid (docs/CONFIGURATION.md has all keys):`, ...all].join('\n  ');
  throw new UsageError(message, { details: { problems: all } });
}

/** The place where YAML is broken, without the lines around it: a password may stand there, and this goes to a log. */
function withoutText(why: string): string {
  return (why.split('\n', 1)[0] ?? '').replace(/:$/, '');
}

/** What a flag has put there is no fault of the file. */
function withOrigin(problem: string, overrides: readonly string[]): string {
  const path = problem.slice(0, problem.indexOf(':'));
  const isFlag = overrides.some((override) => {
    const set = override.slice(0, override.indexOf('='));
    return path === set || path.startsWith(`${set}.`);
  });
  return isFlag ? `${problem} (from --set)` : problem;
}

/** `override`: `path.to.key=value`; a number in the path is a place in a list. */
function overridden(
  raw: unknown,
  override: string,
): { readonly value: unknown } | { readonly problem: string } {
  const [, path, text] = /^([\w-]+(?:\.[\w-]+)*)=(.*)$/s.exec(override) ?? [];
  if (path === undefined || text === undefined) {
    return { problem: `--set ${override}: it is path.to.key=value, as listen.clients=127.0.0.1:7100` };
  }
  try {
    return { value: put(raw, path.split('.'), parse(text)) };
  } catch (error) {
    if (error instanceof RangeError) return { problem: `--set ${path}: ${error.message}` };
    const why = error instanceof Error ? error.message : String(error);
    return { problem: `--set ${path}: the value is no YAML: ${withoutText(why)}` };
  }
}

function put(into: unknown, [key = '', ...below]: readonly string[], value: unknown): unknown {
  if (Array.isArray(into) && /^\d+$/.test(key) && Number(key) <= into.length) {
    const old: readonly unknown[] = into;
    const place = Number(key);
    return [
      ...old.slice(0, place),
      below.length === 0 ? value : put(old[place], below, value),
      ...old.slice(place + 1),
    ];
  }
  if (Array.isArray(into)) {
    throw new RangeError(
      `${key} is no place in this list; its places are 0 to ${into.length}, the last one adds to it`,
    );
  }
  const old: Record<string, unknown> = typeof into === 'object' && into !== null ? { ...into } : {};
  return { ...old, [key]: below.length === 0 ? value : put(old[key], below, value) };
}

/** Files that a configuration names, by their keys: one line for each that is not there. Those left out need not be. */
export function missingFiles(
  file: string,
  named: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return Object.entries(named).flatMap(([key, path]) => {
    if (path === undefined) return [];
    const place = besideConfig(file, path);
    return existsSync(place) ? [] : [`${key}: there is no file ${place}`];
  });
}

/** A path in a configuration is relative to its file. */
export function besideConfig(file: string, path: string): string {
  return resolve(dirname(file), path);
}

/** What occurs more than once. */
export function duplicates(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, at) => values.indexOf(value) !== at))];
}
