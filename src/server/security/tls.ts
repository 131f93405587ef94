/**
 * TLS from files. New connections use what the files hold now; those that are open stay as they are. Files that do not fit together (a key
 * without its certificate, half a rotation) change nothing.
 *
 * A replica is who its certificate says: DNS name `<serverId>.<group>`. The one that dials checks the name of whom it reaches like any host
 * name, and the one that is reached looks for the names in the caller's certificate. A certificate of another group, or a client's, has
 * no such name.
 */
import type { Buffer } from 'node:buffer';
import { constants, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  checkServerIdentity,
  createSecureContext,
  type PeerCertificate,
  type SecureContextOptions,
} from 'node:tls';
import {
  type ChannelCredentials,
  type ClientOptions,
  credentials,
  ServerCredentials,
  type VerifyOptions,
} from '@grpc/grpc-js';
import type { Runtime } from '../../platform/runtime.ts';
import { WatchedFiles } from '../../platform/watched-files.ts';
import { reloadsTo } from './reloads.ts';

/** Paths. */
interface KeyPairFiles {
  readonly cert: string;
  readonly key: string;
}

/** PEM. */
export interface KeyPair {
  readonly ca: Buffer | null;
  readonly cert: Buffer;
  readonly key: Buffer;
}

const VERSION = { minVersion: 'TLSv1.3' } as const;

/** Throws when they cannot be read or do not fit together. */
export function watchKeyPair(
  files: KeyPairFiles & { readonly ca?: string },
  { timers, logger }: Runtime,
): WatchedFiles<KeyPair> {
  return new WatchedFiles({
    paths: [files.cert, files.key, ...(files.ca === undefined ? [] : [files.ca])],
    parse: ([cert, key, ca = null]) => {
      const pair = { cert: cert as Buffer, key: key as Buffer, ca };
      createSecureContext(contextOf(pair));
      if (ca !== null) checkAuthorities(ca, files.ca ?? '');
      return pair;
    },
    timers,
    onReload: reloadsTo(logger),
  });
}

export function watchCa(path: string, { timers, logger }: Runtime): WatchedFiles<Buffer> {
  return new WatchedFiles({
    paths: [path],
    parse: ([ca]) => {
      checkAuthorities(ca as Buffer, path);
      return ca as Buffer;
    },
    timers,
    onReload: reloadsTo(logger),
  });
}

const CERTIFICATE_BEGINS = '-----BEGIN CERTIFICATE-----';

/**
 * OpenSSL leaves out, without a word, what it cannot read of a file of authorities. Half of such a file would take the place of the whole,
 * and nobody who is signed by the other half could connect. Throws when it is not whole.
 */
function checkAuthorities(ca: Buffer, path: string): void {
  const [, ...bodies] = String(ca).split(CERTIFICATE_BEGINS);
  if (bodies.length === 0) throw new Error(`${path} holds no certificate`);
  for (const [at, body] of bodies.entries()) {
    try {
      new X509Certificate(`${CERTIFICATE_BEGINS}${body}`);
    } catch (error) {
      throw new Error(`${path}: certificate ${at + 1} of ${bodies.length} is damaged`, { cause: error });
    }
  }
}

function contextOf({ cert, key, ca }: KeyPair): SecureContextOptions {
  return { ...VERSION, cert, key, ...(ca === null ? {} : { ca }) };
}

/**
 * Each connection shows its certificate anew. A resumed session is not looked at again: whoever once had a certificate could go on after its
 * end for ever, and without its key.
 */
const WITHOUT_RESUMPTION = { secureOptions: constants.SSL_OP_NO_TICKET };

/**
 * A connection whose peer begins calls only to cancel them is ended: to take a call costs more than to send it, and a thousand of them, which
 * Node.js allows, can arrive within one turn of the event loop. At once, and a second.
 */
const CANCELLED_CALLS = { streamResetBurst: 100, streamResetRate: 20 };
/** A connection that has not proved itself by then is closed; Node.js waits two minutes. */
const HANDSHAKE_MS_MAX = 10_000;

/** Of a server whose certificate may be replaced; with a CA it takes only clients that show a certificate of it. */
export class ReloadingServerCredentials extends ServerCredentials {
  constructor(pair: WatchedFiles<KeyPair>, handshakeMsMax = HANDSHAKE_MS_MAX) {
    const isMutual = pair.value.ca !== null;
    const context = (value: KeyPair): SecureContextOptions => ({
      ...contextOf(value),
      ...(isMutual ? WITHOUT_RESUMPTION : {}),
    });
    const proof = { requestCert: isMutual, rejectUnauthorized: isMutual, handshakeTimeout: handshakeMsMax };
    super({ ...VERSION, ...CANCELLED_CALLS, ...proof }, context(pair.value));
    pair.onChange((value) => this.updateSecureContextOptions(context(value)));
  }

  _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}

/** How one connection is made. */
export interface Dial {
  readonly credentials: ChannelCredentials;
  readonly options: ClientOptions;
}

export function dialPlaintext(): Dial {
  return { credentials: credentials.createInsecure(), options: {} };
}

/** From a replica to another, which must be who it is said to be. */
export function dialReplica({ value: { ca, cert, key } }: WatchedFiles<KeyPair>, name: string): Dial {
  return { credentials: credentials.createSsl(ca, key, cert), options: expectName(name) };
}

/**
 * To a lock server whose certificate must be for `serverName`, or else for the host of `endpoint`. `own`: what the caller shows of itself.
 * Throws when that is no certificate with its key.
 */
export function dialServer(
  ca: Buffer,
  endpoint: string,
  serverName?: string,
  own: { readonly cert: Buffer; readonly key: Buffer } | null = null,
): Dial {
  const secure = (verify?: VerifyOptions): ChannelCredentials =>
    credentials.createSsl(ca, own?.key ?? null, own?.cert ?? null, verify);
  if (serverName !== undefined) return { credentials: secure(), options: expectName(serverName) };
  const host = endpoint.slice(0, endpoint.lastIndexOf(':')).replace(/^\[|\]$/g, '');
  if (isIP(host) === 0) return { credentials: secure(), options: {} };
  // TLS knows no address as a name to ask for, so it is asked for none that exists; the certificate must be for the address.
  const verify = (_name: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate);
  return {
    credentials: secure({ checkServerIdentity: verify }),
    options: { 'grpc.ssl_target_name_override': 'address.invalid' },
  };
}

function expectName(name: string): ClientOptions {
  return { 'grpc.ssl_target_name_override': name, 'grpc.default_authority': name };
}

export function replicaName(serverId: string, group: string): string {
  return `${serverId}.${group}`;
}

/** Whether a certificate, as Node.js shows its alternative names (`DNS:a.b, URI:...`), is of this replica. */
export function provesReplica(subjectAltName: string | undefined, serverId: string, group: string): boolean {
  return provesName(subjectAltName, replicaName(serverId, group));
}

/** The same of a DNS name, or of a URI such as `spiffe://cluster/ns/x/sa/y`. */
export function provesName(subjectAltName: string | undefined, name: string): boolean {
  // A name with a comma or a quote in it is shown in quotes, and equals none of ours.
  return (subjectAltName ?? '').split(', ').includes(`${name.includes('://') ? 'URI' : 'DNS'}:${name}`);
}
