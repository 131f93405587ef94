/**
 * Puts the routes on an Express router. Express matches the path while it is still encoded, takes one raw segment for a
 * parameter and decodes it once; it neither resolves `..` nor collapses slashes (cases H02, H04, H05, H10; the tests
 * hold it to that).
 */
import type { Express, NextFunction, Request, Response } from 'express';
import { LeaseholdError } from '../../api/errors.ts';
import { readBody } from './body.ts';
import { onHangUp } from './hang-up.ts';
import { clipped, invalid } from './problems.ts';
import { ENCODING, encodingProblem } from './query.ts';
import type { RawCall, Reply, Route } from './route.ts';
import type { HealthDependencies } from './routes/dependencies.ts';
import { suggestRoutes } from './suggestions.ts';

/** What is known of a request on its way; Express keeps it as `response.locals`. */
export type Locals = {
  readonly startedMs: number;
  /** Template of the route, for metrics. */
  route: string;
  /** What this route adds to its refusals. */
  refusalContext: Readonly<Record<string, unknown>>;
  /** Methods of colon forms whose path matched, for the Allow header. */
  allowed: readonly string[];
};

export type Answering = Response<unknown, Locals>;

export type Deliver = (response: Answering, reply: Reply) => void;

const COLON_FORM = /:[a-z]+$/;

/** Registers every route under its path and aliases, and last what answers everything else. */
export function mount<Dependencies extends HealthDependencies>(
  app: Express,
  routes: readonly Route<Dependencies>[],
  dependencies: Dependencies,
  deliver: Deliver,
): void {
  const places = routes.flatMap((route) => [route.path, ...route.aliases].map((path) => ({ path, route })));
  const byPath = Map.groupBy(places, ({ path }) => path);
  const colonForms = [...byPath].filter(([path]) => COLON_FORM.test(path));
  const plainForms = [...byPath].filter(([path]) => !COLON_FORM.test(path));
  // `/v1/locks/{name}` would take `payouts%2Fa:acquire` for a name, so the colon forms come first.
  for (const [path, group] of [...colonForms, ...plainForms]) {
    const place = app.route(expressPath(path));
    for (const { route } of group) {
      const handler = handlerOf(route, COLON_FORM.test(path), dependencies, deliver);
      place[METHODS[route.method]](handler);
    }
    place.all(otherMethod(allowedMethods(group.map(({ route }) => route)), COLON_FORM.test(path)));
  }
  app.use((request: Request) => {
    throw unknownRoute(request, routes);
  });
}

const METHODS = { GET: 'get', POST: 'post', DELETE: 'delete' } as const;

/** `/v1/locks/{name}:acquire` in Express's notation, where a colon starts a parameter. */
function expressPath(template: string): string {
  return template.replace(COLON_FORM, (form) => `\\${form}`).replace(/\{([a-z]+)\}/, ':$1');
}

/** Express answers HEAD from GET; a stream is left out, since opening and closing it would end a session (rule A3). */
function allowedMethods(routes: readonly Route<never>[]): string[] {
  return routes.flatMap((route) =>
    route.method === 'GET' && !route.streams ? ['GET', 'HEAD'] : [route.method],
  );
}

function otherMethod(allowed: readonly string[], isColonForm: boolean) {
  return (request: Request, response: Answering, next: NextFunction) => {
    response.locals.allowed = [...response.locals.allowed, ...allowed];
    if (isColonForm) next();
    else throw methodNotAllowed(request, response.locals.allowed);
  };
}

function methodNotAllowed(request: Request, allowed: readonly string[]): LeaseholdError {
  const allow = [...new Set(allowed)].sort().join(', ');
  return new LeaseholdError('METHOD_NOT_ALLOWED', `${request.method} is not possible here; use ${allow}.`, {
    field: 'method',
    limit: allow,
    allow,
  });
}

function unknownRoute(request: Request, routes: readonly Route<never>[]): LeaseholdError {
  const { routes: close, hint } = suggestRoutes(request.path, routes);
  return new LeaseholdError(
    'NOT_FOUND',
    `No route ${request.method} ${clipped(request.path)}; close to it: ${close.join(', ')}.${hint}`,
    { field: 'path', limit: close.join(', '), routes: close },
  );
}

function handlerOf<Dependencies extends HealthDependencies>(
  route: Route<Dependencies>,
  isColonForm: boolean,
  dependencies: Dependencies,
  deliver: Deliver,
) {
  return async (request: Request, response: Answering): Promise<void> => {
    if (request.method === 'HEAD' && route.streams) throw methodNotAllowed(request, allowedMethods([route]));
    const parameter = parameterOf(request);
    response.locals.route = route.path;
    response.locals.refusalContext = route.refusalContext(parameter);
    if (isColonForm) refuseSecondColon(request);
    const body = route.body === null ? {} : await readBody(request, response);
    const call = new HttpCall(request, response, {
      parameter,
      body,
      isStopping: () => dependencies.isStopping(),
    });
    try {
      deliver(response, await route.run(call, dependencies));
    } catch (thrown) {
      // Not knowing what happened, the service must treat it as if nobody waited for the answer (rule A5).
      if (!(thrown instanceof LeaseholdError)) call.giveUp();
      throw thrown;
    }
  };
}

function parameterOf(request: Request): string | undefined {
  const { name, id } = request.params;
  const value = name ?? id;
  return typeof value === 'string' ? value : undefined;
}

/** Where a colon ends the name, a colon inside it must be encoded, or readers could take it for another end. */
function refuseSecondColon(request: Request): void {
  const segment = request.path.slice(request.path.lastIndexOf('/') + 1);
  if (segment.indexOf(':') === segment.lastIndexOf(':')) return;
  throw invalid({
    field: request.params.name === undefined ? 'session_id' : 'name',
    limit: ENCODING,
    reason: 'a colon inside is sent as %3A in this form of the path',
  });
}

/** What to answer when Express could not decode a parameter. */
export function undecodable(request: Request): LeaseholdError {
  const raw = request.path.split('/').find((segment) => !isDecodable(segment)) ?? '';
  const isSession = /^(\/v1)?\/sessions\//.test(request.path);
  return invalid({ field: isSession ? 'session_id' : 'name', limit: ENCODING, reason: encodingProblem(raw) });
}

function isDecodable(segment: string): boolean {
  try {
    decodeURIComponent(segment);
    return true;
  } catch {
    return false;
  }
}

interface CallParts {
  readonly parameter: string | undefined;
  readonly body: object;
  isStopping(): boolean;
}

class HttpCall implements RawCall {
  readonly request: Request;
  readonly response: Response;
  readonly parameter: string | undefined;
  readonly body: object;
  readonly #isStopping: () => boolean;
  #left: AbortController | undefined;

  constructor(request: Request, response: Answering, { parameter, body, isStopping }: CallParts) {
    this.request = request;
    this.response = response;
    this.parameter = parameter;
    this.body = body;
    this.#isStopping = isStopping;
  }

  get query(): string {
    const mark = this.request.url.indexOf('?');
    return mark === -1 ? '' : this.request.url.slice(mark + 1);
  }

  hangUp(): AbortSignal {
    if (this.#left === undefined) {
      this.#left = new AbortController();
      onHangUp(this.request, this.response, () => {
        if (!this.#isStopping()) this.giveUp();
      });
    }
    return this.#left.signal;
  }

  giveUp(): void {
    this.#left?.abort();
  }
}
