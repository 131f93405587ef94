/** The fields that bodies are made of: each with its bound, its unit and a text for the API description. */
import * as z from 'zod';
import { TOKEN_MAX, TTL_MS_MAX, TTL_MS_MIN } from '../../api/limits.ts';
import { utf8Length } from '../../api/names.ts';

const MS_PER_SECOND = 1_000;
/** How far `7.001 * 1000` may be off a whole number for no other reason than binary fractions. */
const MS_ROUNDING = 1e-6;

export function secondsToMs(seconds: number): number {
  return Math.round(seconds * MS_PER_SECOND);
}

export interface TextBounds {
  readonly min: 0 | 1;
  /** Bytes of UTF-8. */
  readonly max: number;
}

/** Null when `value` is well-formed and within its bounds, else the reason. */
export function textProblem(value: string, { min, max }: TextBounds): string | null {
  if (value.length < min) return 'must not be empty';
  if (!value.isWellFormed()) return 'must be well-formed Unicode (it has a lone surrogate)';
  // A code unit is at least one byte, so this spares counting what is far too long.
  const bytes = value.length > max ? value.length : utf8Length(value);
  return bytes > max ? `must be at most ${max} bytes of UTF-8` : null;
}

/** Text that is kept exactly as it came (cases H04, H09). */
export function text(bounds: TextBounds, description: string): z.ZodString {
  return z
    .string()
    .superRefine((value, context) => {
      const message = textProblem(value, bounds);
      if (message !== null) context.addIssue({ code: 'custom', message, params: { limit: bounds.max } });
    })
    .meta({
      description: `${description} At most ${bounds.max} bytes of UTF-8.`,
      minLength: bounds.min,
      maxLength: bounds.max,
    });
}

export function wholeNumber(min: number, max: number, description: string): z.ZodNumber {
  return z.number().int().min(min).max(max).meta({ description });
}

export const token = wholeNumber(1, TOKEN_MAX, 'The fencing token of the grant.');

/** Seconds, in steps of a millisecond (case E03: a ttl in milliseconds is far out of range). */
export const ttlSeconds = z
  .number()
  .min(TTL_MS_MIN / MS_PER_SECOND)
  .max(TTL_MS_MAX / MS_PER_SECOND)
  .superRefine((value, context) => {
    const ms = value * MS_PER_SECOND;
    if (Math.abs(ms - Math.round(ms)) <= MS_ROUNDING) return;
    context.addIssue({
      code: 'custom',
      message: 'must be a whole number of milliseconds',
      params: { limit: 1 / MS_PER_SECOND },
    });
  });

/** A field or value that is part of the API but is not served yet. */
export function notAvailable<Schema extends z.ZodType>(
  schema: Schema,
  served: z.output<Schema>,
  what: string,
): Schema {
  const limit = JSON.stringify(served);
  return schema.superRefine((value, context) => {
    if (value === served) return;
    context.addIssue({
      code: 'custom',
      message: `${what} not available yet; send ${limit} or leave it out`,
      params: { limit },
    });
  });
}
