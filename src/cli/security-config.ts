/** The parts of configurations that say who is trusted, and what is refused without them: plain text stays on this machine. */
import * as z from 'zod';
import { parseAddress } from './config-file.ts';

const file = z.string().min(1).max(4_096);
const name = z.string().min(1).max(253);

/** For the replicas of a group among each other, and for etcd. */
export const groupTls = z.strictObject({
  /** Certificates of the authority that signs the group's members, and nobody else. PEM. */
  ca: file,
  /** This server's certificate, for the DNS name `<serverId>.<name>`, to be a server and a client. PEM. */
  cert: file,
  key: file,
  /** Name of the group in its certificates. Left out: `<LockNamespace>.<its Kubernetes namespace>`. */
  name: name.optional(),
});

export const clientsTls = z.strictObject({
  /** Certificate that clients check. PEM, with intermediate ones. */
  cert: file,
  key: file,
});

export const adminTls = z.strictObject({
  /** Certificates of the authority that signs operators. Another one than that of clients, or one whose names are told apart. PEM. */
  ca: file,
  /** Certificate that operators check. PEM. */
  cert: file,
  key: file,
});

/** A name in a certificate: a DNS name, or a URI. */
export const operatorName = z
  .string()
  .max(512)
  .regex(
    /^([a-z0-9-]+(\.[a-z0-9-]+)*|[a-z][a-z0-9+.-]*:\/\/[^\s,"]+)$/,
    'a DNS name in lower case or a URI, as it stands in the certificate',
  );

const account = z.string().regex(/^[a-z0-9.-]+\/[a-z0-9.-]+$/, 'an account is <namespace>/<ServiceAccount>');

export const tokens = z.strictObject({
  /** JSON Web Key Set with the public keys of the issuer. */
  jwks: file,
  /** What a token must be for. */
  audience: z.string().min(1).max(253).default('leasehold'),
  /** Who must have issued it. Left out: whoever has a key in the set. */
  issuer: z.string().min(1).max(1_024).optional(),
  /** Accounts whose tokens need not be bound to a pod: those of people. */
  people: z.array(account).max(100).default([]),
});

const LOOPBACK = /^(localhost|127(\.[0-9]{1,3}){3}|::1)$/;

export function isLoopback(host: string): boolean {
  return LOOPBACK.test(host);
}

/** Null when plain text is all right at this address: nobody else can read there. */
export function plaintextProblem(field: string, address: string, wayOut: string): string | null {
  if (isLoopback(parseAddress(address).host)) return null;
  return `${field}: ${address} is reached from other machines, in plain text: ${wayOut}, or say insecure: true`;
}
