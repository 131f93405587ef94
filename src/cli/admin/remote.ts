/** How the commands of operators reach a lock server elsewhere: by address, over mutual TLS; and what its failures mean. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { isServiceError } from '../../server/grpc/peer-calls.ts';
import { type Dial, dialServer } from '../../server/security/tls.ts';
import { address } from '../config-file.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import { whyUnreadable } from '../folders.ts';
import type { AdminTarget } from '../options.ts';

const FILES = ['ca', 'cert', 'key'] as const;

export function flagOf(option: (typeof FILES)[number] | 'serverName'): string {
  return option === 'serverName' ? '--server-name' : `--${option}`;
}

/** @throws UsageError an option is missing, or a file cannot be used. */
export function dialRemote(target: AdminTarget & { readonly endpoint: string }): Dial {
  const { endpoint, serverName } = target;
  if (!address.safeParse(endpoint).success) throw new UsageError(`--endpoint ${endpoint}: it is host:port`);
  const missing = FILES.filter((option) => target[option] === undefined);
  if (missing.length > 0) {
    const list = missing.map(flagOf).join(', ');
    throw new UsageError(
      `--endpoint takes mutual TLS: name ${list}, the files that prove who calls, and whom`,
    );
  }
  const [ca, cert, key] = FILES.map((option) => read(option, target[option] ?? '')) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  usable('--ca', () => createSecureContext({ ca }));
  usable('--cert and --key', () => createSecureContext({ cert, key }));
  return dialServer(ca, endpoint, serverName, { cert, key });
}

function read(option: (typeof FILES)[number], path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`${flagOf(option)}: ${path} cannot be read: ${whyUnreadable(error)}`, {
      cause: error,
    });
  }
}

function usable(what: string, use: () => void): void {
  try {
    use();
  } catch (error) {
    throw new UsageError(`${what}: no PEM files that belong together: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** A connection that cannot be made is told with its cause; all else is the answer of a lock server. */
export function remoteError(endpoint: string, error: unknown): unknown {
  if (!isServiceError(error) || error.code !== status.UNAVAILABLE) return error;
  const why = whyNotConnected(error.details);
  if (why === null) return error;
  return new UnavailableError(`${endpoint} cannot be used: ${why}`, { cause: error });
}

/** Null: it was connected, and the answer is that of a lock server. */
function whyNotConnected(details: string): string | null {
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/.test(details)) {
    return `nobody listens there (${causeIn(details)}): it is "listen.admin" in the configuration of a running lock server`;
  }
  if (/altnames|Host(name|):.*not in the cert/i.test(details)) {
    return `its certificate is for another name: use that in --endpoint, or name it with --server-name (${causeIn(details)})`;
  }
  if (/certificate|self.signed|unable to (get|verify)/i.test(details) && !/alert/i.test(details)) {
    return `its certificate is not signed by the authority in --ca (${causeIn(details)})`;
  }
  if (
    /alert|ECONNRESET|Failed to connect|socket (hang up|disconnected)|EPROTO|wrong version/i.test(details)
  ) {
    return `it does not take the certificate in --cert, or no TLS is spoken there (${causeIn(details)}): the certificate must be signed by the authority in its tls.admin.ca. Or too many are connected: its log says so, and a later try is taken`;
  }
  return null;
}

/** The last cause, without the resolver's notes. */
function causeIn(details: string): string {
  return (/Last error: (?:Error: )?(.*?)(?:\. Resolution note.*)?$/s.exec(details)?.[1] ?? details).trim();
}
