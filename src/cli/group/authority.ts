/**
 * A certificate authority and a token issuer for a group on this machine: what a cluster has from its operator and its kube-apiserver. The library
 * that makes certificates takes half a second to load, so it is loaded only here.
 */
import { webcrypto } from 'node:crypto';
import type { JWK } from 'jose';
import { systemClock } from '../../platform/system-runtime.ts';
import { TOKEN_LIFE_S_MAX } from '../../server/security/tokens.ts';

const CURVE = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const DAY_MS = 24 * 3_600_000;
const VALID_MS = 3_650 * DAY_MS;
/** What is made now is valid for clocks that are a little behind. */
const BACKDATED_MS = 60_000;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const SERIAL_BYTES = 15;

/** PEM. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateNames {
  readonly dns?: readonly string[];
  readonly ip?: readonly string[];
  readonly uri?: readonly string[];
}

export class Authority {
  readonly #x509: typeof import('@peculiar/x509');
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #certificate: import('@peculiar/x509').X509Certificate;

  private constructor(
    x509: typeof import('@peculiar/x509'),
    keys: webcrypto.CryptoKeyPair,
    certificate: import('@peculiar/x509').X509Certificate,
  ) {
    this.#x509 = x509;
    this.#keys = keys;
    this.#certificate = certificate;
  }

  static async make(name: string): Promise<Authority> {
    await import('reflect-metadata');
    const x509 = await import('@peculiar/x509');
    const keys = await newKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: `CN=${name}`,
      keys,
      signingAlgorithm: CURVE,
      ...validity(),
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      ],
    });
    return new Authority(x509, keys, certificate);
  }

  /** PEM. */
  get certificate(): string {
    return this.#certificate.toString('pem');
  }

  /** For a server and a client in one. */
  async certify(name: string, { dns = [], ip = [], uri = [] }: CertificateNames): Promise<Certified> {
    const x509 = this.#x509;
    const keys = await newKeys();
    const names = [
      ...dns.map((value) => ({ type: 'dns' as const, value })),
      ...ip.map((value) => ({ type: 'ip' as const, value })),
      ...uri.map((value) => ({ type: 'url' as const, value })),
    ];
    const certificate = await x509.X509CertificateGenerator.create({
      subject: `CN=${name}`,
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: CURVE,
      ...validity(),
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([SERVER_AUTH, CLIENT_AUTH]),
        new x509.SubjectAlternativeNameExtension(names),
      ],
    });
    const der = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
    return { cert: certificate.toString('pem'), key: x509.PemConverter.encode(der, 'PRIVATE KEY') };
  }
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(CURVE, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;
}

function validity() {
  const now = systemClock.wallMs();
  const serial = webcrypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  return {
    // The first bit of a serial number is its sign.
    serialNumber: `01${Buffer.from(serial).toString('hex')}`,
    notBefore: new Date(now - BACKDATED_MS),
    notAfter: new Date(now + VALID_MS),
  };
}

export interface TokenClaims {
  /** `<Kubernetes namespace>/<ServiceAccount>`. */
  readonly account: string;
  /** Left out: bound to no pod, as those of people. */
  readonly podUid?: string;
  readonly audience?: string;
  readonly issuer?: string;
  readonly lifeSeconds?: number;
  /** Seconds since 1970; left out: now. */
  readonly issuedAt?: number;
}

const ISSUER_DEFAULT = 'https://leasehold.local';
const ALGORITHM = 'ES256';

/** What signs tokens. `secret` may be kept in a file, to go on with later. */
export class TokenIssuer {
  readonly secret: JWK;

  constructor(secret: JWK) {
    this.secret = secret;
  }

  static async make(): Promise<TokenIssuer> {
    const jose = await import('jose');
    const { privateKey } = await jose.generateKeyPair(ALGORITHM, { extractable: true });
    const secret = await jose.exportJWK(privateKey);
    return new TokenIssuer({ ...secret, alg: ALGORITHM, kid: await jose.calculateJwkThumbprint(secret) });
  }

  /** JSON Web Key Set with the public key. */
  get keySet(): { readonly keys: readonly JWK[] } {
    const { d: _secret, ...key } = this.secret;
    return { keys: [{ ...key, use: 'sig' }] };
  }

  async issue({
    account,
    podUid,
    audience = 'leasehold',
    issuer = ISSUER_DEFAULT,
    lifeSeconds = TOKEN_LIFE_S_MAX,
    issuedAt = Math.floor(systemClock.wallMs() / 1_000),
  }: TokenClaims): Promise<string> {
    const jose = await import('jose');
    const [namespace = '', name = ''] = account.split('/');
    const pod = podUid === undefined ? {} : { pod: { name: `${name}-pod`, uid: podUid } };
    return new jose.SignJWT({
      'kubernetes.io': { namespace, serviceaccount: { name, uid: `${name}-uid` }, ...pod },
    })
      .setProtectedHeader({ alg: ALGORITHM, kid: this.secret.kid ?? '' })
      .setSubject(`system:serviceaccount:${namespace}:${name}`)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setNotBefore(issuedAt)
      .setExpirationTime(issuedAt + lifeSeconds)
      .sign(await jose.importJWK(this.secret, ALGORITHM));
  }
}
