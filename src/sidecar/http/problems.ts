/**
 * What is wrong with a request: every problem names field, limit and reason, and a request is told all of its problems
 * at once, so that one look at the answer is enough to mend it.
 */
import type * as z from 'zod';
import { LeaseholdError } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';

export interface Problem {
  /** Name of the body field, query parameter, header or path part. */
  readonly field: string;
  /** What would be right: a bound, or words. */
  readonly limit: number | string;
  readonly reason: string;
}

/** Problems told in one answer; more are only counted. */
const PROBLEMS_MAX = 20;
const FIELD_CHARACTERS_MAX = 100;

/** INVALID with the first problem spelled out and all of them listed. */
export function invalid(...problems: readonly [Problem, ...Problem[]]): LeaseholdError {
  const [first] = problems;
  const others = problems.length - 1;
  const more = others === 0 ? '' : ` (and ${others} more, see problems)`;
  return new LeaseholdError('INVALID', `${first.field}: ${first.reason}${more}`, {
    field: first.field,
    limit: first.limit,
    reason: first.reason,
    problems: problems.slice(0, PROBLEMS_MAX),
  });
}

/** Throws INVALID if there is anything in the list. */
export function refuseIfAny(problems: readonly Problem[]): void {
  const [first, ...rest] = problems;
  if (first !== undefined) throw invalid(first, ...rest);
}

/** What a schema was held against. */
export interface Checked {
  readonly input: object;
  readonly schema: z.ZodObject;
  readonly noun: FieldNoun;
}

export type FieldNoun = 'field' | 'query parameter';

/** A schema's issues as problems: at most one a field, in the order found. */
export function problemsOf(error: z.ZodError, checked: Checked): Problem[] {
  const byField = new Map<string, Problem>();
  for (const issue of error.issues) {
    for (const problem of issueProblems(issue, checked)) {
      if (!byField.has(problem.field)) byField.set(problem.field, problem);
    }
  }
  return [...byField.values()];
}

type Issue = z.ZodError['issues'][number];

function issueProblems(issue: Issue, checked: Checked): Problem[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField(key, checked));
  const field = issue.path.join('.');
  const value = Object.hasOwn(checked.input, field) ? Reflect.get(checked.input, field) : undefined;
  return [{ field, ...wrongValue(issue, field, value) }];
}

function wrongValue(issue: Issue, field: string, value: unknown): Omit<Problem, 'field'> {
  switch (issue.code) {
    case 'invalid_type': {
      const expected = TYPE_WORDS[issue.expected] ?? `a ${issue.expected}`;
      if (value === undefined) return { limit: expected, reason: `is required: ${expected}` };
      return { limit: expected, reason: `must be ${expected}, not ${typeWord(value)}` };
    }
    case 'invalid_value': {
      const allowed = `one of ${issue.values.map((one) => JSON.stringify(one)).join(', ')}`;
      return {
        limit: allowed,
        reason: value === undefined ? `is required: ${allowed}` : `must be ${allowed}`,
      };
    }
    case 'too_big':
      return { limit: Number(issue.maximum), reason: `must be at most ${issue.maximum}${unitOf(field)}` };
    case 'too_small':
      return { limit: Number(issue.minimum), reason: `must be at least ${issue.minimum}${unitOf(field)}` };
    case 'custom':
      return { limit: limitOf(issue.params), reason: issue.message };
    default:
      return { limit: 'see the API description', reason: issue.message };
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  object: 'a JSON object',
};

function typeWord(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'number' || Number.isInteger(value)) return TYPE_WORDS[typeof value] ?? typeof value;
  return Number.isFinite(value) ? 'a fraction' : 'a number too large to represent';
}

/** Units stand in field names (case E03); the reason repeats them, since mistaking them is the usual fault. */
function unitOf(field: string): string {
  if (field.endsWith('_ms')) return ' milliseconds';
  return field.endsWith('_s') ? ' seconds' : '';
}

function limitOf(params: Readonly<Record<string, unknown>> | undefined): number | string {
  const limit = params?.limit;
  return typeof limit === 'number' || typeof limit === 'string' ? limit : 'see the API description';
}

function unknownField(key: string, { schema, noun }: Checked): Problem {
  const known = Object.keys(schema.shape);
  const suggestion = nearest(key, known);
  const hint = suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
  return {
    field: clipped(key),
    limit: known.length === 0 ? `no ${noun}` : `one of ${known.join(', ')}`,
    reason: `is not a ${noun} of this route${hint}`,
  };
}

/** Keeps text of the caller's that we repeat to a bounded size, without cutting a character in two. */
export function clipped(text: string, max: number = FIELD_CHARACTERS_MAX): string {
  return text.length <= max ? text : `${text.slice(0, max).toWellFormed()}...`;
}
