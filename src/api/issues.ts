/** What is wrong with a file that a schema was held against, in words: the path, what stands there, what may stand there, and what was probably meant. */
import type * as z from 'zod';
import { nearest } from './nearest.ts';

const SHOWN_CHARS_MAX = 60;

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

/** Of a union whose kind is told by one key, which has none of the values that there are. */
interface Discriminated {
  readonly discriminator?: string;
  readonly options?: readonly unknown[];
}

/** For a check of one's own: the words of `wordsOf`. `what`: with its article, as "a range, from-to". */
export function mustBe(what: string): { readonly error: (issue: { readonly input?: unknown }) => string } {
  return { error: ({ input }) => `it is ${shown(input)}, and must be ${what}` };
}

/** For `safeParse`: the words of an issue, without its path. What a schema says itself wins. */
export function wordsOf(issue: RawIssue): string | undefined {
  const { input } = issue;
  switch (issue.code) {
    case 'invalid_type':
      if (input === undefined) return `it is missing; it is ${kindOf(issue.expected)}`;
      return `it is ${shown(input)}, and must be ${kindOf(issue.expected)}`;
    case 'too_small':
      return `it ${amountOf(issue.origin, input)}, and must ${haveOf(issue.origin)} at least ${issue.minimum}`;
    case 'too_big':
      return `it ${amountOf(issue.origin, input)}, and may ${haveOf(issue.origin)} at most ${issue.maximum}`;
    case 'invalid_value': {
      const values = issue.values.map(String);
      return `it is ${shown(input)}, and must be ${values.join(' or ')}${meant(String(input), values)}`;
    }
    case 'invalid_union': {
      const { discriminator, options } = issue as Discriminated;
      if (discriminator === undefined || options === undefined) return undefined;
      const value = (input as Readonly<Record<string, unknown>> | null)?.[discriminator];
      const values = options.map(String);
      if (value === undefined) return `it is missing; it is ${values.join(' or ')}`;
      return `it is ${shown(value)}, and must be ${values.join(' or ')}${meant(String(value), values)}`;
    }
    case 'invalid_format':
      return issue.format === 'url' ? `it is ${shown(input)}, and must be a URL` : undefined;
    default:
      return undefined;
  }
}

/** One line for each problem, unknown keys told apart. `whole`: what a problem is called that is not one of a key. */
export function issueLines(
  schema: z.ZodType,
  issues: readonly z.core.$ZodIssue[],
  whole = '(the file)',
): readonly string[] {
  return issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code !== 'unrecognized_keys') return [`${path.join('.') || whole}: ${issue.message}`];
    const known = keysAt(schema, path);
    let all = known.length > 0 ? `; there are ${known.join(', ')}` : '';
    return issue.keys.map((key) => {
      // Known to another kind of the same union.
      const near = known.includes(key) ? ' in one of this kind' : meant(key, known);
      const wayOut = near || all;
      // Once: a file that is for something else has many such keys.
      if (near === '') all = '';
      return `${[...path, key].join('.')}: there is no such key${wayOut}`;
    });
  });
}

function meant(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  return near === undefined ? '' : `; did you mean ${near}?`;
}

interface Definition {
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** The keys that an object of the schema may have. */
function keysAt(schema: z.ZodType, [key, ...below]: readonly string[]): readonly string[] {
  const { def, shape } = schema as unknown as {
    readonly def: Definition;
    readonly shape?: Readonly<Record<string, z.ZodType>>;
  };
  const path = key === undefined ? [] : [key, ...below];
  if (def.innerType !== undefined) return keysAt(def.innerType, path);
  if (def.options !== undefined) return [...new Set(def.options.flatMap((option) => keysAt(option, path)))];
  if (key === undefined) return Object.keys(shape ?? {});
  const next = shape?.[key] ?? def.element ?? def.valueType;
  return next === undefined ? [] : keysAt(next, below);
}

const KINDS: Readonly<Record<string, string>> = {
  object: 'a group of keys',
  record: 'a group of keys',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
};

function kindOf(expected: string): string {
  return KINDS[expected] ?? `a ${expected}`;
}

/** What is wrong with a URL is often its password, with a character that has to be written otherwise; and this goes to a log. */
function shown(value: unknown): string {
  const text = (JSON.stringify(value) ?? String(value))
    .replace(/\/\/[^\s"]*@/g, '//redacted@')
    .replace(/(\/\/[^\s"?]*\?)[^\s"]*/g, '$1redacted');
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}...` : text;
}

function amountOf(origin: string, input: unknown): string {
  if (origin === 'array' && Array.isArray(input)) return `has ${input.length} items`;
  if (origin === 'string' && typeof input === 'string') return `has ${input.length} characters`;
  return `is ${shown(input)}`;
}

function haveOf(origin: string): string {
  return origin === 'array' || origin === 'string' ? 'have' : 'be';
}
