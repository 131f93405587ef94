/** Query parameters: form encoding as every client library writes it there (`+` is a blank), decoded once. */
import type { Problem } from './problems.ts';

export type QueryValues = Readonly<Record<string, string | number>>;

const DECIMAL = /^-?[0-9]+(\.[0-9]+)?$/;

/**
 * `query`: what follows the first `?`, still encoded. Values of `numeric` parameters that look like numbers become
 * numbers. What is wrong goes to `problems`; a parameter that cannot be read is left out.
 */
export function parseQuery(query: string, numeric: readonly string[], problems: Problem[]): QueryValues {
  const values = new Map<string, string | number>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const key = decodeForm(equals === -1 ? pair : pair.slice(0, equals), 'query', problems);
    if (key === null) continue;
    const value = decodeForm(equals === -1 ? '' : pair.slice(equals + 1), key, problems);
    if (value === null) continue;
    if (values.has(key)) problems.push({ field: key, limit: 1, reason: 'is given more than once' });
    values.set(key, numeric.includes(key) && DECIMAL.test(value) ? Number(value) : value);
  }
  return Object.fromEntries(values);
}

function decodeForm(raw: string, field: string, problems: Problem[]): string | null {
  try {
    return decodeURIComponent(raw.replaceAll('+', '%20'));
  } catch {
    problems.push({ field, limit: ENCODING, reason: encodingProblem(raw) });
    return null;
  }
}

export const ENCODING = 'percent-encoded UTF-8';

/** Why `decodeURIComponent` refused `raw`. */
export function encodingProblem(raw: string): string {
  return /%(?![0-9A-Fa-f]{2})/.test(raw)
    ? 'a % must be followed by two hexadecimal digits; a literal % is sent as %25'
    : 'the percent-encoded bytes are not valid UTF-8';
}
