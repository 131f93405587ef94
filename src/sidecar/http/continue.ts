/** The `continue` of lists: the last name of the page, made opaque so that nobody builds on what is inside. */
import { splitAlias } from '../../api/names.ts';
import { invalid } from './problems.ts';

export function encodeContinue(lastName: string): string {
  return Buffer.from(lastName, 'utf8').toString('base64url');
}

/** The full name after which to go on. Throws INVALID for anything that no answer to the same `prefix` contained. */
export function decodeContinue(value: string, prefix: string): string {
  const name = Buffer.from(value, 'base64url').toString('utf8');
  // Decoding forgives what encoding never makes (other alphabets, bits left over, bytes that are not UTF-8).
  if (encodeContinue(name) !== value || splitAlias(name) === null) throw refused('was not made by this API');
  if (!name.startsWith(prefix)) throw refused('belongs to another prefix');
  return name;
}

function refused(reason: string) {
  return invalid({ field: 'continue', limit: 'the `continue` of the page before', reason });
}
