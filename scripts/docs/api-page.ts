/** docs/API.md, from the routes and their schemas. */
import * as z from 'zod';
import type { RouteDocument } from '../../src/sidecar/http/route.ts';
import { healthRoutes } from '../../src/sidecar/http/routes/health.ts';
import { apiRoutes } from '../../src/sidecar/http/routes/index.ts';
import { block, GENERATED, table } from './markdown.ts';

const ORIGIN = 'http://localhost:7070';

export function apiPage(): string {
  return `# HTTP API

${GENERATED}

Applications call it on localhost: in \`leasehold dev\` and beside the sidecar of a pod, port 7070. The same as a document for tools: [openapi/leasehold.v1.json](../openapi/leasehold.v1.json), also served at \`/v1/openapi.json\`. What is refused, and how, stands in [ERRORS.md](ERRORS.md).

## In short

${table(['route', 'what it does'], apiRoutes.map(overview))}

On the second port, 7071, reached by the pod's address (\`leasehold dev\` has them on its one port):

${table(['route', 'what it does'], healthRoutes.map(overview))}

## Rules for all routes

- **Names.** \`{name}\` is \`<alias>/<rest>\`, percent-encoded as one path segment: \`payouts%2Fmerchant-48213\`. It is decoded once and then means exactly what it says: no character is special, nothing is trimmed, folded or resolved. \`<rest>\` has 1 to 512 bytes of UTF-8.
- **Forms.** \`POST /v1/locks/{name}:acquire\`, \`:release\`, \`:renew\` and \`POST /v1/sessions/{id}:keepalive\` are the same routes (there a colon inside the name is sent as %3A), and so are all routes of sessions and locks without \`/v1\`. GET routes answer HEAD, except the event stream.
- **Bodies** are JSON objects of at most 64 KiB; none at all counts as \`{}\`. Unknown fields and query parameters are refused, so that a slip is not ignored.
- **Units** stand in the names: \`ttl_s\` and \`keepalive_every_s\` are seconds, every \`*_ms\` milliseconds. \`deadline_monotonic_ns\` is a string, since it does not fit a JSON number.
- **Tokens** are whole numbers below 2^53, exact in every language. Each grant of a name has a higher one than all before.
- **Who may call.** Programs on this machine or in this pod. Requests of web pages (with an \`Origin\` header) and those under a foreign \`Host\` are refused; no CORS header is ever sent.
- **Which keepalive?** With \`stream\` and \`both\` the open event stream proves that the application lives: **a reconnect of the event stream loses the locks**, except after a restart of the sidecar. Use \`app\` where connections do not last.
- **Modes**: a LockNamespace allows \`exclusive\` alone unless it says otherwise (\`modes\`, \`semaphores\`). Asking for more is answered INVALID, with the way out.

${[...apiRoutes, ...healthRoutes].map(section).join('\n\n')}
`;
}

function overview(route: RouteDocument): string[] {
  return [`[\`${route.method} ${route.path}\`](#${anchor(route)})`, route.summary];
}

/** As GitHub makes anchors of headings: lower case, punctuation dropped, blanks to hyphens. */
function anchor({ summary }: RouteDocument): string {
  return summary
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}

function section(route: RouteDocument): string {
  const parts = [`## ${route.summary}`, `\`${route.method} ${route.path}\``];
  if (route.aliases.length > 0) {
    parts[1] += `, also ${route.aliases.map((alias) => `\`${alias}\``).join(', ')}`;
  }
  parts.push(route.description);
  if (route.body !== null && hasFields(route.body)) parts.push(fields('field', route.body));
  if (hasFields(route.query)) parts.push(fields('query parameter', route.query));
  parts.push(block('sh', curl(route)), block(languageOf(route), shownAnswer(route)));
  if (route.errors.length > 0) {
    parts.push(`Refusals: ${route.errors.map((code) => `\`${code}\``).join(', ')}.`);
  }
  return parts.join('\n\n');
}

function hasFields(schema: z.ZodObject): boolean {
  return Object.keys(schema.shape).length > 0;
}

interface FieldSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly description?: string;
}

function fields(noun: string, schema: z.ZodObject): string {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input' });
  const rows = Object.entries(properties as Record<string, FieldSchema>).map(([name, field]) => [
    `\`${name}\``,
    typeOf(field),
    defaultOf(field, required.includes(name)),
    field.description ?? '',
  ]);
  return table([noun, 'type', 'default', 'meaning'], rows);
}

function typeOf({ type = 'any', enum: allowed, minimum, maximum }: FieldSchema): string {
  if (allowed !== undefined) return allowed.map((value) => `\`${value}\``).join(' or ');
  if (minimum === undefined || maximum === undefined || type === 'boolean') return type;
  const most = maximum === Number.MAX_SAFE_INTEGER ? '2^53 - 1' : maximum.toLocaleString('en-US');
  return `${type}, ${minimum.toLocaleString('en-US')} to ${most}`;
}

function defaultOf(field: FieldSchema, isRequired: boolean): string {
  if (isRequired) return '(required)';
  return field.default === undefined ? '' : `\`${JSON.stringify(field.default)}\``;
}

function curl({ method, example }: RouteDocument): string {
  const url = `${ORIGIN}${example.path}`;
  const target = /[?&]/.test(url) ? `'${url}'` : url;
  if (method === 'GET') return `curl ${target}`;
  if (example.body === undefined) return `curl -X ${method} ${target}`;
  return `curl ${target} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(example.body)}'`;
}

function languageOf({ contentType }: RouteDocument): string {
  return contentType === 'application/json' ? 'json' : '';
}

function shownAnswer({ example: { answer } }: RouteDocument): string {
  return Array.isArray(answer) ? answer.join('\n') : JSON.stringify(answer, null, 2);
}
