/**
 * Who a client is, from its ServiceAccount token, checked here against a key set: no call to a kube-apiserver, so locks go on without one.
 *
 * A token that has ended still proves who its bearer was. It is taken for a day, for keeping and giving back what a session holds
 * (the front end refuses everything else, and an attach takes the session's secret besides): when nobody can renew tokens, no lock is
 * lost (ADR 24). A token never stands in an error or a log line.
 */
import type { Buffer } from 'node:buffer';
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose';
import * as z from 'zod';
import type { Identity } from '../../api/entry.ts';
import { LeaseholdError } from '../../api/errors.ts';
import type { Clock, Runtime } from '../../platform/runtime.ts';
import { WatchedFiles } from '../../platform/watched-files.ts';
import { TOKEN_LEEWAY_MS } from '../front-end/admission.ts';
import { reloadsTo } from './reloads.ts';

/** A token that lives longer than this from its issue is refused: it would still work long after its pod is gone. */
export const TOKEN_LIFE_S_MAX = 3_600;
/** The last second that a date can be. */
const MAX_DATE_S = 8_640_000_000_000;
/** For so long after its end a token still serves to keep and give back. */
const KEEP_AFTER_END_MS = 24 * 3_600_000;
/** A ServiceAccount token has about 1,000 bytes; what is longer is not even looked at. */
const TOKEN_CHARACTERS_MAX = 16_384;
/** Signatures with a public key; a shared secret would let whoever checks also issue. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

export interface TokenPolicy {
  readonly audience: string;
  /** Left out: any issuer whose key is in the set. */
  readonly issuer?: string | undefined;
  /** Accounts (`<namespace>/<name>`) whose tokens need no pod: those of people. */
  readonly people: readonly string[];
}

export interface Proof {
  readonly identity: Identity;
  /** Wall time, ms since 1970, leeway included: from then on nothing new. May be past. */
  readonly untilMs: number;
}

/** As long as any name in Kubernetes; it goes into the log with each session. */
const name = z.string().min(1).max(253);
const kubernetesClaims = z.object({
  namespace: name,
  serviceaccount: z.object({ name }),
  pod: z.object({ uid: name }).optional(),
});

const keySet = z.object({
  keys: z.array(z.looseObject({ kty: z.enum(['RSA', 'EC', 'OKP']), d: z.undefined().optional() })).min(1),
});

/** The public keys of the issuer. Throws when the file holds none, or secret ones. */
export function watchKeys(path: string, { timers, logger }: Runtime): WatchedFiles<JSONWebKeySet> {
  return new WatchedFiles({ paths: [path], parse: parseKeys, timers, onReload: reloadsTo(logger) });
}

function parseKeys([content]: readonly Buffer[]): JSONWebKeySet {
  const raw: unknown = JSON.parse(String(content));
  const parsed = keySet.safeParse(raw);
  if (!parsed.success) {
    const where = parsed.error.issues.map(({ path }) => path.join('.')).join(', ');
    throw new Error(`this is no set of public keys (JWKS with RSA, EC or OKP keys): ${where}`);
  }
  return raw as JSONWebKeySet;
}

export class TokenVerifier {
  readonly #keys: WatchedFiles<JSONWebKeySet>;
  readonly #clock: Clock;
  readonly #policy: TokenPolicy;
  #resolve: { readonly of: JSONWebKeySet; readonly key: JWTVerifyGetKey } | null = null;

  constructor(keys: WatchedFiles<JSONWebKeySet>, clock: Clock, policy: TokenPolicy) {
    this.#keys = keys;
    this.#clock = clock;
    this.#policy = policy;
  }

  /** `authorization`: value of that header. Throws UNAUTHENTICATED, saying what is wrong. */
  async verify(authorization: string | undefined): Promise<Proof> {
    const token = /^Bearer ([\w.-]+)$/i.exec(authorization ?? '')?.[1];
    if (token === undefined || token.length > TOKEN_CHARACTERS_MAX) {
      throw refused('no token was sent: "authorization: Bearer <ServiceAccount token>"');
    }
    const claims = await this.#claims(token);
    const { iat, exp } = claims;
    if (iat === undefined || exp === undefined)
      throw refused('the token does not say when it begins and ends');
    if (!isTime(iat) || !isTime(exp)) throw refused('the token begins or ends at no possible time');
    if (iat * 1_000 > this.#clock.wallMs() + TOKEN_LEEWAY_MS)
      throw refused('the token was issued in the future: do the clocks differ?');
    const lifeS = exp - iat;
    if (lifeS > TOKEN_LIFE_S_MAX) {
      throw refused(
        `the token lives for ${lifeS} s and may for ${TOKEN_LIFE_S_MAX} s: ask for a shorter one (expirationSeconds)`,
      );
    }
    const endMs = exp * 1_000;
    if (this.#clock.wallMs() > endMs + KEEP_AFTER_END_MS) {
      throw refused(`the token ended at ${new Date(endMs).toISOString()}`);
    }
    return { identity: this.#identity(claims), untilMs: endMs + TOKEN_LEEWAY_MS };
  }

  /** Of a token with a good signature for us, whether it has ended or not. */
  async #claims(token: string): Promise<JWTPayload> {
    const { jwtVerify, errors } = await import('jose');
    const { audience, issuer } = this.#policy;
    const options = {
      algorithms: ALGORITHMS,
      audience,
      clockTolerance: TOKEN_LEEWAY_MS / 1_000,
      currentDate: new Date(this.#clock.wallMs()),
      ...(issuer === undefined ? {} : { issuer }),
    };
    try {
      const { payload } = await jwtVerify(token, await this.#key(), options);
      return payload;
    } catch (error) {
      // Everything else about it was found good before its end was looked at.
      if (error instanceof errors.JWTExpired) return error.payload;
      throw refused(this.#reason(error));
    }
  }

  async #key(): Promise<JWTVerifyGetKey> {
    const { createLocalJWKSet } = await import('jose');
    const of = this.#keys.value;
    if (this.#resolve?.of !== of) this.#resolve = { of, key: createLocalJWKSet(of) };
    return this.#resolve.key;
  }

  #identity(claims: JWTPayload): Identity {
    const parsed = kubernetesClaims.safeParse(claims['kubernetes.io']);
    if (!parsed.success)
      throw refused(
        'the token is no ServiceAccount token: its claims "kubernetes.io" are missing, or too long',
      );
    const { namespace, serviceaccount, pod } = parsed.data;
    if (claims.sub !== `system:serviceaccount:${namespace}:${serviceaccount.name}`) {
      throw refused('the subject of the token is another account than its claims "kubernetes.io" name');
    }
    const account = `${namespace}/${serviceaccount.name}`;
    if (pod !== undefined) return { account, podUid: pod.uid };
    if (this.#policy.people.includes(account)) return { account, podUid: '' };
    throw refused(
      `the token of ${account} is bound to no pod: use the projected token of a pod, or list the account under tokens.people of the lock server`,
    );
  }

  /** The library's words never hold the token; these also say what was expected. */
  #reason(error: unknown): string {
    const { claim, code, message } = error as { claim?: string; code?: string; message?: string };
    const { audience, issuer } = this.#policy;
    if (claim === 'aud') return `the token is for another audience; this lock server takes ${audience}`;
    if (claim === 'iss') return `the token is of another issuer; this lock server takes ${issuer}`;
    if (claim === 'nbf') return 'the token is not valid yet: do the clocks differ?';
    if (code === 'ERR_JWKS_NO_MATCHING_KEY' || code === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') {
      return 'the token is signed by nobody that this lock server trusts';
    }
    return `the token cannot be read: ${message ?? code ?? 'malformed'}`;
  }
}

/** Seconds since 1970 that are a date. */
function isTime(seconds: number): boolean {
  return seconds >= 0 && seconds <= MAX_DATE_S;
}

function refused(message: string): LeaseholdError {
  return new LeaseholdError('UNAUTHENTICATED', message);
}
