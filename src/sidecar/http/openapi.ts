/** The API as an OpenAPI 3.1 document, made from the routes and their schemas. */
import * as z from 'zod';
import { ERRORS, type ErrorCode } from '../../api/errors.ts';
import * as answers from './answers.ts';
import * as requests from './requests.ts';
import type { RouteDocument } from './route.ts';
import { healthRoutes } from './routes/health.ts';
import { apiRoutes } from './routes/index.ts';

type Json = Readonly<Record<string, unknown>>;

const COMPONENTS: Readonly<Record<string, z.ZodType>> = {
  OpenSession: requests.openBody,
  Acquire: requests.acquireBody,
  Release: requests.releaseBody,
  Renew: requests.renewBody,
  StaleReport: requests.staleReportBody,
  Session: answers.openAnswer,
  Deadline: answers.deadlineAnswer,
  Closed: answers.closedAnswer,
  Acquired: answers.acquiredAnswer,
  Renewed: answers.renewedAnswer,
  Released: answers.releasedAnswer,
  Recorded: answers.recordedAnswer,
  Held: answers.heldAnswer,
  Holder: answers.holder,
  Waiter: answers.waiter,
  Lock: answers.lock,
  LockList: answers.listAnswer,
  EventLine: answers.eventLine,
  Error: answers.errorAnswer,
  NotAcquired: answers.notAcquiredAnswer,
};

const SCHEMA_PATH = '#/components/schemas/';
const HEALTH_SERVER = {
  url: 'http://localhost:7071',
  description: 'second port; in `leasehold dev` the same port',
};

/** Made anew at each call. */
export function openApiDocument(): Json {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(COMPONENTS)) registry.add(schema, { id });
  return {
    openapi: '3.1.0',
    info: {
      title: 'Leasehold',
      version: '1.0.0',
      summary: 'Distributed locks with fencing tokens, on localhost.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://localhost:7070' }],
    paths: {
      ...paths(apiRoutes, registry, {}),
      ...paths(healthRoutes, registry, { servers: [HEALTH_SERVER] }),
    },
    components: { schemas: componentSchemas(registry) },
  };
}

type Registry = z.core.$ZodRegistry<{ id: string }>;

function componentSchemas(registry: Registry): Json {
  const { schemas } = z.toJSONSchema(registry, { uri: (id) => `${SCHEMA_PATH}${id}`, io: 'input' });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutHeader(schema)]));
}

/** `$schema` and `$id` would set a base for references that OpenAPI resolves itself. */
function withoutHeader({ $schema: _schema, $id: _id, ...schema }: Json): Json {
  return schema;
}

function schemaOf(schema: z.ZodType, registry: Registry): Json {
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: `${SCHEMA_PATH}${id}` };
  return withoutHeader(z.toJSONSchema(schema, { io: 'input' }));
}

function paths(routes: readonly RouteDocument[], registry: Registry, common: Json): Json {
  const byPath: Record<string, Json> = {};
  for (const route of routes) {
    byPath[route.path] = {
      ...(byPath[route.path] ?? common),
      [route.method.toLowerCase()]: operation(route, registry),
    };
  }
  return byPath;
}

function operation(route: RouteDocument, registry: Registry): Json {
  const aliases = route.aliases.map((alias) => `\`${alias}\``).join(', ');
  return {
    operationId: route.id,
    summary: route.summary,
    description: aliases === '' ? route.description : `${route.description} Also served as ${aliases}.`,
    parameters: [...pathParameters(route), ...queryParameters(route)],
    ...(route.body !== null && { requestBody: requestBody(route, route.body, registry) }),
    responses: { 200: success(route, registry), ...refusals(route, registry) },
  };
}

function pathParameters(route: RouteDocument): Json[] {
  if (route.path.includes('{name}')) {
    const description =
      'Full name of the lock, `<alias>/<rest>`, percent-encoded as one segment (the slash as %2F); decoded once. ' +
      'No character is special; `<rest>` has 1 to 512 bytes of UTF-8.';
    const example = 'payouts/merchant-48213';
    return [{ name: 'name', in: 'path', required: true, description, schema: { type: 'string' }, example }];
  }
  if (!route.path.includes('{id}')) return [];
  const description = 'The session, as POST /v1/sessions named it.';
  return [{ name: 'id', in: 'path', required: true, description, schema: { type: 'string' } }];
}

function queryParameters(route: RouteDocument): Json[] {
  return Object.entries(route.query.shape).map(([name, field]) => {
    const schema = withoutHeader(z.toJSONSchema(field, { io: 'input' }));
    return {
      name,
      in: 'query',
      required: !z.safeParse(field, undefined).success && !isOptional(field),
      schema,
    };
  });
}

function isOptional(field: z.core.$ZodType): boolean {
  return field._zod.optin === 'optional';
}

function requestBody(route: RouteDocument, body: z.ZodType, registry: Registry): Json {
  const example = route.example.body;
  const media = { schema: schemaOf(body, registry), ...(example !== undefined && { example }) };
  return { required: example !== undefined, content: { 'application/json': media } };
}

function success(route: RouteDocument, registry: Registry): Json {
  const { answer } = route.example;
  const example = Array.isArray(answer) ? `${answer.join('\n')}\n` : answer;
  return {
    description: 'Done.',
    content: { [route.contentType]: { schema: schemaOf(route.answer, registry), example } },
  };
}

function refusals(route: RouteDocument, registry: Registry): Json {
  const byStatus = Map.groupBy(route.errors, (code) => ERRORS[code].status);
  const schema = schemaOf(route.refusal, registry);
  return Object.fromEntries([...byStatus].map(([status, codes]) => [status, refusal(status, codes, schema)]));
}

function refusal(status: number, codes: readonly ErrorCode[], schema: Json): Json {
  const retryAfter = { description: 'Seconds to wait before the next try.', schema: { type: 'integer' } };
  return {
    description: codes.map((code) => `${code}: ${ERRORS[code].text}`).join('\n\n'),
    ...((status === 429 || status === 503) && { headers: { 'Retry-After': retryAfter } }),
    content: {
      'application/json': { schema: { allOf: [schema], properties: { code: { enum: codes } } } },
    },
  };
}
