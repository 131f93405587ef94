/** What a lock server trusts, from the files of its configuration: its certificates, and how clients and other replicas prove who they are. */
import { ServerCredentials, status } from '@grpc/grpc-js';
import type { NamespaceConfig } from '../../api/config.ts';
import type { EtcdCredentials } from '../../log/etcd/client.ts';
import type { EtcdLogOptions } from '../../log/etcd/etcd-log.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { WatchedFiles } from '../../platform/watched-files.ts';
import type { Caller, Identify } from '../../server/grpc/lock-service.ts';
import { type RelayClientOptions, SERVER_ID_HEADER } from '../../server/grpc/relay-client.ts';
import type { IdentifyPeer } from '../../server/grpc/relay-service.ts';
import { CallError } from '../../server/grpc/status.ts';
import {
  dialPlaintext,
  dialReplica,
  type KeyPair,
  provesReplica,
  ReloadingServerCredentials,
  replicaName,
  watchKeyPair,
} from '../../server/security/tls.ts';
import { TokenVerifier, watchKeys } from '../../server/security/tokens.ts';
import { UsageError } from '../errors.ts';
import type { ServerConfig } from './config.ts';

/** Of a connection to the port of operators: with its bounds (admin-server.ts) silent strangers hold three quarters of it at most. */
const OPERATOR_HANDSHAKE_MS_MAX = 3_000;
/** Whoever connects, where nobody has to prove anything. */
const UNPROVEN: Caller = { identity: { account: 'unproven/client', podUid: '' } };

export interface ServerSecurity {
  /** For the port of the clients, and for that of the replicas. */
  readonly clients: ServerCredentials;
  readonly replicas: ServerCredentials;
  /** For the port of operators; null: there is none. */
  readonly admin: ServerCredentials | null;
  readonly identify: Identify;
  readonly identifyPeer: IdentifyPeer;
  /** How this replica dials another. */
  readonly dial: RelayClientOptions['dial'];
  /** How it dials etcd. */
  readonly etcd: {
    /** Those of now. */
    readonly credentials?: EtcdCredentials;
    readonly onCredentials?: EtcdLogOptions['onCredentials'];
  };
  close(): void;
}

/** @throws UsageError a file is missing or cannot be used. */
export function loadSecurity(
  config: ServerConfig,
  namespace: NamespaceConfig,
  { runtime, beside }: { readonly runtime: Runtime; readonly beside: (path: string) => string },
): ServerSecurity {
  const { tls, tokens, peers } = config;
  const watched: { close(): void }[] = [];
  const watch = <T>(field: string, load: () => WatchedFiles<T>): WatchedFiles<T> => {
    try {
      const files = load();
      watched.push(files);
      return files;
    } catch (error) {
      for (const files of watched) files.close();
      throw new UsageError(`${field}: ${String(error)}`, { cause: error });
    }
  };
  const pairOf = (field: string, { ca, cert, key }: { ca?: string; cert: string; key: string }) =>
    watch(field, () =>
      watchKeyPair(
        { cert: beside(cert), key: beside(key), ...(ca === undefined ? {} : { ca: beside(ca) }) },
        runtime,
      ),
    );
  const group = tls.group === undefined ? null : pairOf('tls.group', tls.group);
  const clients = tls.clients === undefined ? null : pairOf('tls.clients', tls.clients);
  const admin = tls.admin === undefined ? null : pairOf('tls.admin', tls.admin);
  const keys =
    tokens === undefined ? null : watch('tokens.jwks', () => watchKeys(beside(tokens.jwks), runtime));
  const groupName = tls.group?.name ?? `${namespace.name}.${namespace.namespace}`;
  return {
    clients: credentialsOf(clients),
    replicas: credentialsOf(group),
    admin: admin === null ? null : new ReloadingServerCredentials(admin, OPERATOR_HANDSHAKE_MS_MAX),
    identify:
      tokens === undefined || keys === null
        ? async () => UNPROVEN
        : identifyBy(new TokenVerifier(keys, runtime.clock, tokens)),
    identifyPeer: peersOf(peers, group === null ? null : groupName),
    dial: group === null ? dialPlaintext : (serverId) => dialReplica(group, replicaName(serverId, groupName)),
    etcd: group === null ? {} : etcdBy(group),
    close: () => {
      for (const files of watched) files.close();
    },
  };
}

function credentialsOf(pair: WatchedFiles<KeyPair> | null): ServerCredentials {
  return pair === null ? ServerCredentials.createInsecure() : new ReloadingServerCredentials(pair);
}

function identifyBy(verifier: TokenVerifier): Identify {
  return (stream) => {
    const [header] = stream.metadata.get('authorization');
    return verifier.verify(header === undefined ? undefined : String(header));
  };
}

/** `group` null: plain text, and replicas are taken at their word. */
function peersOf(peers: ServerConfig['peers'], group: string | null): IdentifyPeer {
  return (stream) => {
    const claimed = String(stream.metadata.get(SERVER_ID_HEADER)[0] ?? '');
    const names = stream.getAuthContext().sslPeerCertificate?.subjectaltname;
    const isProven = group === null || provesReplica(names, claimed, group);
    if (Object.hasOwn(peers, claimed) && isProven) return claimed;
    throw new CallError(
      status.PERMISSION_DENIED,
      isProven ? 'this stream is of no replica of this group' : 'the certificate is not that of this replica',
    );
  };
}

function etcdBy(group: WatchedFiles<KeyPair>): ServerSecurity['etcd'] {
  return {
    // For each try to open the log: the files may be replaced while etcd does not answer, or because it does not.
    get credentials() {
      return etcdCredentials(group.value);
    },
    onCredentials: (renew) => group.onChange((pair) => renew(etcdCredentials(pair))),
  };
}

function etcdCredentials({ ca, cert, key }: KeyPair): EtcdCredentials {
  if (ca === null) throw new TypeError('etcd is dialled with a CA');
  return { rootCertificate: ca, certChain: cert, privateKey: key };
}
