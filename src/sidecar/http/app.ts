/**
 * The routes as one request listener on Express. What Express would do in its own way is settled before it sees a
 * request (odd targets, foreign hosts) or after (refusals are always JSON of the error table).
 */
import type { RequestListener } from 'node:http';
import express, { type NextFunction, type Request } from 'express';
import type { HttpOutcome } from '../../platform/metrics.ts';
import { asLeaseholdError, jsonAnswer, sendError, sendText } from './answer.ts';
import type { Guard } from './guard.ts';
import { type Answering, type Locals, mount, undecodable } from './mount.ts';
import type { Reply, Route } from './route.ts';
import type { HealthDependencies } from './routes/dependencies.ts';
import { toOriginForm } from './target.ts';

export interface AppOptions<Dependencies extends HealthDependencies> {
  readonly routes: readonly Route<Dependencies>[];
  readonly dependencies: Dependencies;
  /** Throws what a request from the wrong place is answered with. */
  readonly guard: Guard;
}

export function createApp<Dependencies extends HealthDependencies>(
  options: AppOptions<Dependencies>,
): RequestListener {
  const { routes, dependencies, guard } = options;
  const { runtime } = dependencies;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.set('query parser', false);
  app.enable('strict routing');
  app.enable('case sensitive routing');
  mount(app, routes, dependencies, (response, reply) => deliver(response, reply, dependencies));
  app.use((thrown: unknown, request: Request, response: Answering, _next: NextFunction) => {
    fail(response, thrown instanceof URIError ? undecodable(request) : thrown, dependencies);
  });
  return (request, response) => {
    const locals: Locals = {
      startedMs: runtime.clock.monotonicMs(),
      route: 'unknown',
      refusalContext: {},
      allowed: [],
    };
    const answering = Object.assign(response, { locals }) as Answering;
    try {
      guard(request, toOriginForm(request));
    } catch (thrown) {
      fail(answering, thrown, dependencies);
      return;
    }
    app(request, answering);
  };
}

function deliver(response: Answering, reply: Reply, dependencies: HealthDependencies): void {
  if (reply.type === 'json') sendText(response, 200, jsonAnswer(reply.body));
  if (reply.type === 'text') sendText(response, 200, reply.answer);
  count(response, 'OK', 200, dependencies);
}

function fail(response: Answering, thrown: unknown, dependencies: HealthDependencies): void {
  const { runtime } = dependencies;
  const error = asLeaseholdError(thrown, runtime.logger, response.locals.route);
  sendError(response, error, runtime.random, response.locals.refusalContext);
  // A stream that broke after its first line has no other way to say so.
  if (!response.writableEnded) response.destroy();
  count(response, error.code, error.status, dependencies);
}

function count(
  response: Answering,
  outcome: HttpOutcome,
  status: number,
  { runtime, metrics }: HealthDependencies,
): void {
  const { startedMs, route } = response.locals;
  const durationMs = runtime.clock.monotonicMs() - startedMs;
  const hungUp = response.destroyed || response.req.socket.destroyed;
  metrics.http.answered({
    route,
    durationMs,
    status: hungUp ? 0 : status,
    outcome: hungUp ? 'HANG_UP' : outcome,
  });
}
