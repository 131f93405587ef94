/** The fields that bodies are made of: each with its bound, its unit and a text for the API description. */
import * as z from 'zod';
import { TOKEN_MAX, TTL_MS_MAX, TTL_MS_MIN } from '../../api/limits.ts';
import { type TextBounds, textProblem } from '../../api/text.ts';

const MS_PER_SECOND = 1_000;
/** How far `7.001 * 1000` may be off a whole number for no other reason than binary fractions. */
const MS_ROUNDING = 1e-6;

export function secondsToMs(seconds: number): number {
  return Math.round(seconds * MS_PER_SECOND);
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
