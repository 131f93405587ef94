/** Refusals as people want to read them: with who is in the way, or what to write instead. */
import { formatDuration } from '../../api/duration.ts';
import type { LeaseholdError } from '../../api/errors.ts';
import { person, word } from './table.ts';

/** From which flag a field of a request comes. */
const FLAGS: Readonly<Record<string, string>> = {
  wait_ms: '--wait',
  ttl_s: '--ttl',
  owner: '--owner',
  purpose: '--purpose',
  permits: '--permits',
  mode: '--shared, --permits or neither',
};

/** The message of a refusal, with its holder if it names one, or with the field that is wrong and its limit. */
export function refusalText(error: LeaseholdError): string {
  return error.code === 'INVALID' ? invalidText(error) : heldText(error);
}

function heldText({ message, details }: LeaseholdError): string {
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
  return `${message}: by ${person(holder.owner)}${purpose} for ${seconds} s under token ${holder.token}`;
}

function invalidText({ message, details: { field, limit } }: LeaseholdError): string {
  if (typeof field !== 'string') return message;
  const flag = FLAGS[field];
  const from = flag === undefined ? field : `${field}, from ${flag}`;
  return `${message} (${from}${limit === undefined ? '' : `; limit: ${limitText(field, limit)}`})`;
}

/** In the units of the flags. */
function limitText(field: string, limit: unknown): string {
  if (typeof limit !== 'number') return String(limit);
  if (field === 'wait_ms') return formatDuration(limit);
  return field === 'ttl_s' ? formatDuration(Math.round(limit * 1000)) : String(limit);
}
