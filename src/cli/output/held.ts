/** Refusals as people want to read them: with who is in the way. */
import type { LeaseholdError } from '../../api/errors.ts';
import { word } from './table.ts';

/** The message of a refusal, with its holder if it names one. */
export function heldText({ message, details }: LeaseholdError): string {
  const holder = details.holder as
    | {
        readonly owner: string;
        readonly purpose: string;
        readonly held_for_ms: number;
        readonly token: number;
      }
    | null
    | undefined;
  if (holder === undefined || holder === null) return message;
  const purpose = holder.purpose === '' ? '' : ` (${word(holder.purpose)})`;
  const seconds = Math.round(holder.held_for_ms / 1000);
  return `${message}: by ${word(holder.owner)}${purpose} for ${seconds} s under token ${holder.token}`;
}
