/**
 * The localhost HTTP API: what applications call. Everything it knows of locks comes from a `SidecarService`; here are
 * only routes, checks of what callers send, and answers. One folder, one direction:
 *   fields, requests, answers   schemas of bodies              routes/*   the routes, each in one object
 *   route                       what a route is                mount, app the routes on Express
 *   target, query, body, guard  reading a request safely       events     the NDJSON stream
 *   problems, answer            telling what is wrong          server     listening, and what is no HTTP at all
 *   openapi                     the document made of it all
 */
import type { RequestListener } from 'node:http';
import { LeaseholdError } from '../../api/errors.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { SidecarService } from '../service.ts';
import { createApp } from './app.ts';
import { createGuard } from './guard.ts';
import { openApiDocument } from './openapi.ts';
import type { Route } from './route.ts';
import type { ApiDependencies } from './routes/dependencies.ts';
import { healthRoutes } from './routes/health.ts';
import { apiRoutes } from './routes/index.ts';

export { type HttpServer, listenHttp } from './server.ts';
export { openApiDocument };

export interface HttpApiOptions {
  readonly service: SidecarService;
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  /** Host names besides localhost, 127.0.0.1 and [::1] under which callers reach this API, without port. */
  readonly extraHosts?: readonly string[];
  /** See `HealthDependencies`. */
  readonly problems?: () => readonly string[];
  /** Also serve /livez, /readyz and /metrics here, as `leasehold dev` does on its one port. */
  readonly health?: boolean;
}

export interface HttpApi {
  readonly listener: RequestListener;
  /**
   * From now on requests are refused with UNAVAILABLE, and connections that end are no longer reported to the service as
   * hang-ups: its sessions go on in the next process (rule A4). Call it before closing the server.
   */
  beginStop(): void;
}

export function createHttpApi(options: HttpApiOptions): HttpApi {
  const { service, runtime, metrics, extraHosts = [], health = false } = options;
  let stopping = false;
  let openApiText: string | undefined;
  const dependencies: ApiDependencies = {
    service,
    runtime,
    metrics,
    ready: () => !stopping,
    ...(options.problems === undefined ? {} : { problems: options.problems }),
    isStopping: () => stopping,
    openApiText() {
      openApiText ??= JSON.stringify(openApiDocument());
      return openApiText;
    },
  };
  const routes: readonly Route<ApiDependencies>[] = health ? [...apiRoutes, ...healthRoutes] : apiRoutes;
  const fromHere = createGuard(extraHosts);
  return {
    listener: createApp({
      routes,
      dependencies,
      guard(request, host) {
        fromHere(request, host);
        if (stopping && !isHealthPath(request.url)) {
          throw new LeaseholdError('UNAVAILABLE', 'This process is stopping.');
        }
      },
    }),
    beginStop() {
      stopping = true;
    },
  };
}

function isHealthPath(path: string | undefined): boolean {
  return healthRoutes.some((route) => route.path === path);
}

export interface HealthApiOptions {
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  /** Whether this process serves; never whether its group has a quorum. */
  ready(): boolean;
  /** See `HealthDependencies`. */
  problems?(): readonly string[];
}

/** The second port. It is reached by the address of the pod, so it looks at no Host; it tells nothing of any lock. */
export function createHealthApi(options: HealthApiOptions): RequestListener {
  return createApp({
    routes: healthRoutes,
    dependencies: { ...options, isStopping: () => false },
    guard: () => undefined,
  });
}
