/**
 * Fences for an HTTP service: callers send their token in a header, and a request with an older one than its resource has
 * seen is refused with 409 STALE_TOKEN before the handler runs.
 *
 * This checks on arrival. A handler that passed and then stands still may write after a newer holder has: where that
 * matters, it hands its token on to what it writes (`withFence` in the same database transaction, `fencedWrite` to etcd).
 */
import { assertResource, assertToken, reported, type StaleReport, StaleTokenError } from './stale-token.ts';
import type { FenceStore } from './store.ts';

export const TOKEN_HEADER = 'leasehold-token';
/** They promise to change nothing (RFC 9110, 9.2.1). */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
const DIGITS = /^[1-9][0-9]{0,15}$/;

export interface FencingOptions<Request> {
  readonly store: FenceStore;
  /**
   * What the request changes, in the words under which callers take locks; null = not fenced. The same thing has one name, however
   * the path that leads to it is spelled: each name has a fence of its own.
   */
  readonly resourceOf: (request: Request) => string | null;
  /** Also check requests that promise to change nothing; default false. */
  readonly safeMethods?: boolean;
  /** Not waited for. */
  readonly report?: StaleReport;
}

/** What a handler may hand on. */
export interface Fenced {
  readonly resource: string;
  readonly token: number;
}

interface Refusal {
  readonly status: number;
  readonly body: object;
}

type Decision =
  | { readonly type: 'unfenced' }
  | { readonly type: 'passed'; readonly fenced: Fenced }
  | { readonly type: 'refused'; readonly refusal: Refusal };

/** A request of node:http, and so of express. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface NodeResponse {
  statusCode: number;
  readonly headersSent?: boolean;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/**
 * Middleware for node:http, express and their like. It comes before whatever reads the body. `next` is called without
 * argument when the request passed, and with the error when the store failed: then nothing is let through.
 */
export function fencing<Request extends NodeRequest>(options: FencingOptions<Request>) {
  return (request: Request, response: NodeResponse, next: (error?: unknown) => void): void => {
    const header = request.headers[TOKEN_HEADER];
    const presented = Array.isArray(header) ? header.join(', ') : header;
    decide(options, request, request.method ?? 'GET', presented).then((decision) => {
      if (decision.type !== 'refused') return next();
      // A time-out of the service's own has answered meanwhile; to write once more would throw, with nobody to hear it.
      if (response.headersSent === true) return;
      response.statusCode = decision.refusal.status;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(decision.refusal.body));
    }, next);
  };
}

/** The same for handlers in the style of `fetch`; the handler is given what the request presented, null = not fenced. */
export function fencedHandler(
  options: FencingOptions<Request>,
  handler: (request: Request, fenced: Fenced | null) => Response | Promise<Response>,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const decision = await decide(
      options,
      request,
      request.method,
      request.headers.get(TOKEN_HEADER) ?? undefined,
    );
    switch (decision.type) {
      case 'unfenced':
        return handler(request, null);
      case 'passed':
        return handler(request, decision.fenced);
      case 'refused':
        return Response.json(decision.refusal.body, { status: decision.refusal.status });
    }
  };
}

async function decide<Request>(
  { store, resourceOf, safeMethods = false, report }: FencingOptions<Request>,
  request: Request,
  method: string,
  presented: string | undefined,
): Promise<Decision> {
  if (!safeMethods && SAFE_METHODS.has(method)) return { type: 'unfenced' };
  const resource = resourceOf(request);
  if (resource === null) return { type: 'unfenced' };
  assertResource(resource);
  const token = tokenIn(presented);
  if (token === null) return { type: 'refused', refusal: withoutToken(presented) };
  const current = await store.raise(resource, token);
  if (current <= token) return { type: 'passed', fenced: { resource, token } };
  const stale = new StaleTokenError({ token, current, resource });
  // The caller's answer does not wait for the count of refusals.
  void reported(stale, report);
  return { type: 'refused', refusal: { status: stale.status, body: stale.toBody() } };
}

/** Strictly decimal: `1e3`, ` 7`, `07` and `5, 6` (the header given twice) are no tokens. */
function tokenIn(presented: string | undefined): number | null {
  if (presented === undefined || !DIGITS.test(presented)) return null;
  const token = Number(presented);
  return Number.isSafeInteger(token) ? token : null;
}

function withoutToken(presented: string | undefined): Refusal {
  const message =
    presented === undefined
      ? `this resource is fenced: send the token of your lock in the header ${TOKEN_HEADER}`
      : `the header ${TOKEN_HEADER} must be one integer from 1 to 2^53 - 1`;
  return { status: 400, body: { code: 'INVALID', message, field: TOKEN_HEADER } };
}

/** The header for a holder's calls to a fenced service. */
export function tokenHeader(token: number): Record<typeof TOKEN_HEADER, string> {
  assertToken(token);
  return { [TOKEN_HEADER]: String(token) };
}
