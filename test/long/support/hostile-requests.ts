/**
 * Requests that no client of good will sends, aimed at every route and every field of the API: routes and fields are read
 * from the OpenAPI document of the running service, so that a new one is covered without a change here. Each is sent as
 * bytes of a real request; about half of the values are right, since wrong ones alone end at the first check.
 */
import fc from 'fast-check';

export interface HostileRequest {
  readonly route: string;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  /** The lock that it names, if it names one. */
  readonly lock: string | null;
}

interface Grant {
  readonly name: string;
  readonly session: string;
  readonly token: number;
}

/** What was opened and granted so far; a request may use it, or not. */
export interface Known {
  readonly sessions: readonly string[];
  readonly grants: readonly Grant[];
}

interface Operation {
  readonly method: string;
  readonly template: string;
  readonly queries: readonly string[];
  readonly fields: readonly string[];
}

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
}

interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly parameters?: readonly { readonly in?: string; readonly name?: string }[];
            readonly requestBody?: {
              readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
            };
          }
        >
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const METHODS = ['get', 'post', 'delete', 'put', 'patch'];

/** Every operation of the document, and the other forms of its path that the service takes. */
export function operationsOf(document: unknown): readonly Operation[] {
  const { paths, components } = document as OpenApi;
  return Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      if (operation === undefined) return [];
      const schema = operation.requestBody?.content?.['application/json']?.schema;
      const resolved =
        schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1) ?? ''];
      const queries = (operation.parameters ?? []).flatMap((each) =>
        each.in === 'query' ? [each.name ?? ''] : [],
      );
      const fields = Object.keys(resolved?.properties ?? {});
      return formsOf(path).map((template) => ({ method: method.toUpperCase(), template, queries, fields }));
    }),
  );
}

function formsOf(path: string): readonly string[] {
  const forms = [path, path.replace(/^\/v1/, '')];
  const action = /\}\/(acquire|release|renew|keepalive)$/.exec(path)?.[1];
  return action === undefined ? forms : [...forms, path.replace(`/${action}`, `:${action}`)];
}

/** Waits are short: this is about what is taken, not about patience. */
const WAIT_MS_MAX = 20;
const ALIAS = 'hostile';

const nastyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom(
    ...['', ' ', '\0', '\u202e', '\ud800', '__proto__', 'constructor', '../..', '%00', '%2F', 'a\r\nb: c'],
    ...[
      'null',
      'true',
      '$(x)',
      "'; DROP TABLE locks; --",
      '🔒'.repeat(130),
      'x'.repeat(513),
      'x'.repeat(5_000),
    ],
  ),
);
const nastyNumber = fc.oneof(
  fc.constantFrom(0, -0, -1, 1, 0.5, 1e-9, 1e21, 1e308, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 2 ** 63),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
);
const nastyValue = fc.oneof(
  nastyText,
  nastyNumber,
  fc.boolean(),
  fc.constant(null),
  fc.jsonValue({ maxDepth: 3 }),
);

const goodName = fc.oneof(
  fc.integer({ min: 0, max: 40 }).map((n) => `lock-${n}`),
  fc.constantFrom('a/b', 'p*', '日本', 'pool/1', 'pool/2'),
);

/** Text as it may stand in a request line: what Node's client refuses to send is escaped. */
function inPath(text: string): string {
  return text.replace(/[^\x21-\x7e]/g, (character) => encodeURIComponent(character.toWellFormed()));
}

function pathValue(known: Known, name: string | undefined, grant: Grant | null): fc.Arbitrary<string> {
  if (name === undefined) return fc.constant('');
  if (name === 'id')
    return fc.oneof({ weight: 5, arbitrary: pick(known.sessions, 's-none') }, nastyText.map(inPath));
  const named = goodName.map((rest) => encodeURIComponent(`${ALIAS}/${rest}`));
  const anyRest = nastyText.map((rest) => encodeURIComponent(`${ALIAS}/${rest.toWellFormed()}`));
  const right = grant === null ? named : fc.constant(encodeURIComponent(grant.name));
  return fc.oneof({ weight: 8, arbitrary: right }, named, anyRest, nastyText.map(inPath));
}

function pick(from: readonly string[], otherwise: string): fc.Arbitrary<string> {
  return from.length === 0 ? fc.constant(otherwise) : fc.constantFrom(...from);
}

/** A right value for a field, by its name; fields without one get any text. `grant`: what the request is about. */
function goodValue(known: Known, field: string, grant: Grant | null): fc.Arbitrary<unknown> {
  switch (field) {
    case 'session_id':
      return grant === null ? pick(known.sessions, 's-none') : fc.constant(grant.session);
    case 'token':
      return fc.constant(grant?.token ?? 7);
    case 'keepalive':
      return fc.constantFrom('app', 'stream', 'both');
    case 'mode':
      return fc.constantFrom('exclusive', 'exclusive', 'shared', 'semaphore');
    case 'ttl_s':
      return fc.integer({ min: 5, max: 60 });
    case 'max_hold_ms':
      return fc.integer({ min: 1_000, max: 100_000 });
    case 'wait_ms':
      return fc.integer({ min: 0, max: WAIT_MS_MAX });
    case 'permits':
      return fc.constantFrom(1, 1, 1, 2);
    case 'reentrant':
      return fc.boolean();
    case 'request':
      return fc.integer({ min: 0, max: 99 }).map((n) => `r${n}`);
    default:
      return fc.string({ minLength: 1, maxLength: 20 });
  }
}

/** A wait that would be granted is cut to a short one; what is no number in range stays as it is. */
function shortWait(value: unknown): unknown {
  return typeof value === 'number' && value > WAIT_MS_MAX && value <= 24 * 3_600_000 ? WAIT_MS_MAX : value;
}

/** Of an acquire's two forms one: in a session, or opening one. */
const form = fc.constantFrom<readonly string[]>(['client', 'ttl_s'], ['session_id']);

function bodyOf(known: Known, fields: readonly string[], grant: Grant | null) {
  const perField = fields.map((field) => {
    const value = fc.oneof(
      { weight: 19, arbitrary: goodValue(known, field, grant) },
      { weight: 1, arbitrary: nastyValue },
    );
    return fc
      .tuple(fc.nat(99), value)
      .map(([presence, given]) =>
        presence < 88 ? [[field, field === 'wait_ms' ? shortWait(given) : given]] : [],
      );
  });
  const hasForms = fields.includes('session_id') && fields.includes('client');
  const unknownField = fc.oneof(
    { weight: 19, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.tuple(nastyText, nastyValue).map((pair) => [pair]) },
  );
  const object = fc
    .tuple(fc.tuple(...perField, unknownField), form, fc.nat(19))
    .map(([parts, leftOut, both]) => {
      const given = parts.flat().filter(([key]) => !hasForms || both === 0 || !leftOut.includes(String(key)));
      return `{${given.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(',')}}`;
    });
  return fc.oneof(
    { weight: 16, arbitrary: object },
    { weight: 1, arbitrary: fc.json({ maxDepth: 4 }) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 80 }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        null,
        '',
        '{',
        '[]',
        '"x"',
        '['.repeat(3_000),
        `{"a":"${'x'.repeat(70_000)}"}`,
      ),
    },
  );
}

function queryOf(known: Known, grant: Grant | null, names: readonly string[]): fc.Arbitrary<string> {
  const right: Record<string, fc.Arbitrary<string>> = {
    token: goodValue(known, 'token', grant).map(String),
    limit: fc.integer({ min: 1, max: 100 }).map(String),
    prefix: fc.constantFrom('', `${ALIAS}/`, `${ALIAS}/lock-1`),
  };
  const one = fc
    .tuple(fc.constantFrom(...names, 'x', ''), fc.nat(99), nastyText)
    .chain(([name, chance, nasty]) => {
      const good = right[name];
      const value = chance < 60 && good !== undefined ? good : fc.constant(nasty);
      return value.map((text) => `${encodeURIComponent(name)}=${encodeURIComponent(text.toWellFormed())}`);
    });
  const all = names.map((name) =>
    (right[name] ?? nastyText).map((text) => `${name}=${encodeURIComponent(text.toWellFormed())}`),
  );
  return fc.oneof(
    {
      weight: 3,
      arbitrary: fc.tuple(...all).map((pairs) => (pairs.length === 0 ? '' : `?${pairs.join('&')}`)),
    },
    { weight: 1, arbitrary: fc.array(one, { maxLength: 4 }).map((pairs) => `?${pairs.join('&')}`) },
    { weight: 1, arbitrary: nastyText.map((text) => `?${inPath(text)}`) },
  );
}

const headers = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Record<string, string>>({ 'content-type': 'application/json' }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Record<string, string>>(
      {},
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=utf-16' },
      { 'content-encoding': 'gzip' },
      { origin: 'http://evil.example' },
      { host: 'evil.example' },
      { 'leasehold-token': '1', 'x-http-method-override': 'DELETE' },
    ),
  },
);

/** One request to any of the operations. */
export function hostileRequest(operations: readonly Operation[], known: Known): fc.Arbitrary<HostileRequest> {
  const anyGrant = known.grants.length === 0 ? fc.constant(null) : fc.constantFrom(...known.grants, null);
  return fc.tuple(fc.constantFrom(...operations), anyGrant).chain(([operation, anyOf]) => {
    const { template, queries, fields } = operation;
    const name = /\{(\w+)\}/.exec(template)?.[1];
    const grant = name === 'name' && [...fields, ...queries].includes('token') ? anyOf : null;
    const method = fc.oneof(
      { weight: 29, arbitrary: fc.constant(operation.method) },
      { weight: 1, arbitrary: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS') },
    );
    const body = operation.method === 'GET' ? fc.constant(null) : bodyOf(known, fields, grant);
    return fc
      .record({
        method,
        value: pathValue(known, name, grant),
        query: queryOf(known, grant, queries),
        headers,
        body,
      })
      .map(({ value, query, ...rest }) => ({
        ...rest,
        route: `${operation.method} ${template}`,
        lock: name === 'name' ? lockIn(value) : null,
        path: template.replace(/\{\w+\}/, () => value) + query,
      }));
  });
}

function lockIn(value: string): string | null {
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
}
