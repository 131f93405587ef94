/**
 * Keeps web pages away from the API. It listens on localhost without a password, so a page in a browser on this machine
 * could call it: directly (then the browser sends `Origin`), or after pointing a name of its own at 127.0.0.1 (DNS
 * rebinding: then `Host` is that name). Both are refused; programs send neither. No CORS header is ever sent.
 */
import type { IncomingMessage } from 'node:http';
import { LeaseholdError } from '../../api/errors.ts';
import { clipped, invalid } from './problems.ts';

const LOCAL_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

export type Guard = (request: IncomingMessage, host: string | undefined) => void;

/** `extraHosts`: further host names, without port, under which this API is reached. The guard throws FORBIDDEN. */
export function createGuard(extraHosts: readonly string[]): Guard {
  const allowed = new Set([...LOCAL_HOSTS, ...extraHosts.map((host) => host.toLowerCase())]);
  return (request, host) => {
    if (request.headers.origin !== undefined) {
      throw new LeaseholdError(
        'FORBIDDEN',
        'Requests of web pages (with an Origin header) are refused; call this API from a program.',
        { field: 'origin', limit: 'no Origin header' },
      );
    }
    if (host === undefined) {
      // HTTP/1.0 knows no Host; browsers always send one.
      if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) return;
      throw invalid({ field: 'host', limit: 'localhost', reason: 'the Host header is required' });
    }
    if (!allowed.has(withoutPort(host))) {
      throw new LeaseholdError(
        'FORBIDDEN',
        `This API answers to ${[...allowed].join(', ')} only, not to "${clipped(host)}".`,
        { field: 'host', limit: [...allowed].join(', ') },
      );
    }
  };
}

/** Anything that is not plainly host or host:port stays as it is and so matches nothing. */
function withoutPort(host: string): string {
  return host.replace(/:[0-9]{1,5}$/, '').toLowerCase();
}
