/** The request target as HTTP allows it, brought to the one form the routes know: a path that starts with a slash. */
import type { IncomingMessage } from 'node:http';
import { LeaseholdError } from '../../api/errors.ts';
import { clipped, invalid } from './problems.ts';

const EXAMPLE = '/v1/locks';
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Rewrites `request.url` if it is in absolute form (`GET http://localhost:7070/v1/locks`), where the host of the target
 * counts instead of the header. Gives the host to check; undefined = none was sent.
 */
export function toOriginForm(request: IncomingMessage): string | undefined {
  const target = request.url ?? '';
  // Not part of any valid target. Left in, it would cut off the rest of a name.
  if (target.includes('#')) {
    throw invalid({ field: 'path', limit: 'percent-encoded UTF-8', reason: 'a # inside is sent as %23' });
  }
  if (target.startsWith('/')) return request.headers.host;
  const absolute = ABSOLUTE_FORM.exec(target);
  if (absolute === null) {
    throw new LeaseholdError(
      'NOT_FOUND',
      `No route ${request.method} ${clipped(target)}: a path starts with a slash, as in ${EXAMPLE}.`,
      { field: 'path', limit: EXAMPLE, routes: [] },
    );
  }
  const [, host = '', rest = ''] = absolute;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  return host;
}
