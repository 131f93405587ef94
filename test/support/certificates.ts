/** Certificates with one thing wrong each, for the ports that ask callers for one. */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import type { Certified } from '../../src/cli/group/authority.ts';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
export const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const HOUR_MS = 3_600_000;

export interface Signer {
  readonly keys: webcrypto.CryptoKeyPair;
  readonly certificate: x509.X509Certificate;
}

export interface Leaf {
  readonly dns?: readonly string[];
  readonly uri?: readonly string[];
  readonly ip?: readonly string[];
  /** From now; ms. */
  readonly beginsInMs?: number;
  readonly endsInMs?: number;
  readonly usages?: readonly string[];
}

let serial = 1;

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;
}

function validity({ beginsInMs = -HOUR_MS, endsInMs = HOUR_MS }: Leaf) {
  const now = Date.now();
  serial++;
  return {
    serialNumber: `01${serial.toString(16).padStart(6, '0')}`,
    notBefore: new Date(now + beginsInMs),
    notAfter: new Date(now + endsInMs),
  };
}

export async function authority(name: string): Promise<Signer> {
  const keys = await newKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: CURVE,
    ...validity({}),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
    ],
  });
  return { keys, certificate };
}

/** `by` null: signed by itself. */
export async function certify(by: Signer | null, leaf: Leaf): Promise<Certified & Signer> {
  const keys = await newKeys();
  const names = [
    ...(leaf.dns ?? []).map((value) => ({ type: 'dns' as const, value })),
    ...(leaf.uri ?? []).map((value) => ({ type: 'url' as const, value })),
    ...(leaf.ip ?? []).map((value) => ({ type: 'ip' as const, value })),
  ];
  const certificate = await x509.X509CertificateGenerator.create({
    subject: 'CN=test',
    issuer: by?.certificate.subject ?? 'CN=test',
    publicKey: keys.publicKey,
    signingKey: (by?.keys ?? keys).privateKey,
    signingAlgorithm: CURVE,
    ...validity(leaf),
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.ExtendedKeyUsageExtension([...(leaf.usages ?? [SERVER_AUTH, CLIENT_AUTH])]),
      new x509.SubjectAlternativeNameExtension(names),
    ],
  });
  const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  const key = x509.PemConverter.encode(der, 'PRIVATE KEY');
  return { keys, certificate, cert: certificate.toString('pem'), key };
}
