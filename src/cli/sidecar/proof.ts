/** How a sidecar checks whom it talks to, and proves who it is: an authority's certificate and a token, from files that are replaced. */
import { Metadata } from '@grpc/grpc-js';
import type { Runtime } from '../../platform/runtime.ts';
import { WatchedFiles } from '../../platform/watched-files.ts';
import { reloadsTo } from '../../server/security/reloads.ts';
import { type Dial, dialPlaintext, dialServer, watchCa } from '../../server/security/tls.ts';
import { UsageError } from '../errors.ts';

export interface SidecarProof {
  /** `serverName`: in the certificate, when it is not the host of the endpoint. */
  dial(endpoint: string, serverName: string | undefined): Dial;
  readonly metadata: () => Metadata;
  /** Told when there is another token. */
  onToken(listener: () => void): void;
  close(): void;
}

/** Paths, both optional. @throws UsageError a file cannot be used. */
export function loadProof(
  { ca, token }: { readonly ca?: string | undefined; readonly token?: string | undefined },
  runtime: Runtime,
): SidecarProof {
  const authority = ca === undefined ? null : loaded('ca', () => watchCa(ca, runtime));
  const bearer = token === undefined ? null : loaded('token', () => watchToken(token, runtime));
  return {
    dial: (endpoint, serverName) =>
      authority === null ? dialPlaintext() : dialServer(authority.value, endpoint, serverName),
    metadata: () => {
      const metadata = new Metadata();
      if (bearer !== null) metadata.set('authorization', `Bearer ${bearer.value}`);
      return metadata;
    },
    onToken: (listener) => bearer?.onChange(listener),
    close: () => {
      authority?.close();
      bearer?.close();
    },
  };
}

function loaded<T>(field: string, load: () => T): T {
  try {
    return load();
  } catch (error) {
    throw new UsageError(`${field}: ${String(error)}`, { cause: error });
  }
}

function watchToken(path: string, { timers, logger }: Runtime): WatchedFiles<string> {
  return new WatchedFiles({
    paths: [path],
    parse: ([content]) => {
      const text = String(content).trim();
      if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) throw new Error(`${path} holds no token`);
      return text;
    },
    timers,
    onReload: reloadsTo(logger),
  });
}
