/** Manifests with any value in any one of their fields: each field of the full manifest gets every kind of wrong value. */
import fc from 'fast-check';
import { stringify } from 'yaml';
import { VALID } from '../../../src/platform/manifests/manifest.fixture.ts';
import { readYaml } from '../../../src/platform/manifests/yaml-source.ts';

type Path = readonly (string | number)[];

const valid = readYaml(VALID)[0]?.value as object;

function pathsIn(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([key, child]) =>
      pathsIn(child, [...path, Array.isArray(value) ? Number(key) : key]),
    ),
  ];
}

/** Every field of the full manifest, lists' items and the objects between included. */
const FIELDS: readonly Path[] = pathsIn(valid).slice(1);

const NASTY: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 0.5, 1e308, -1e308, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY],
  ...[
    '',
    ' ',
    '-',
    '0',
    '-1s',
    '1e9h',
    '9'.repeat(400),
    '15s',
    '1.5s',
    '10m',
    '24h',
    '1Gi',
    '1Ei',
    '-4Gi',
    'x',
    '*',
  ],
  ...[
    '\0',
    '\ud800',
    '\u202e',
    '日本',
    '🔒',
    'x'.repeat(41),
    'x'.repeat(2_000),
    '__proto__',
    '../..',
    '$(x)',
    '<<',
  ],
  ...[[], {}, [[]], [null], ['x'], [1], { x: 1 }, [{}], Array.from({ length: 2_000 }, () => 'x')],
  ...[
    { __proto__: null, constructor: 1 },
    [{ pattern: '*', permits: 0 }],
    [{ pattern: 'a', permits: 1 }],
    ['Exclusive', 'Shared'],
  ],
];

function replaced(path: Path, value: unknown): object {
  const copy = structuredClone(valid);
  let parent = copy as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) parent = parent[step] as Record<string | number, unknown>;
  const last = path.at(-1) ?? '';
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
}

const anyValue = fc.oneof(
  fc.constantFrom(...NASTY, undefined),
  fc.jsonValue({ maxDepth: 2 }),
  fc.string({ unit: 'binary' }),
);

/** One to three fields replaced. */
export const hostileManifest: fc.Arbitrary<string> = fc
  .array(fc.tuple(fc.nat(FIELDS.length - 1), anyValue), { minLength: 1, maxLength: 3 })
  .map((changes) => {
    const [first, ...rest] = changes.map(([index, value]) => ({ path: FIELDS[index] ?? [], value }));
    let text = stringify(replaced(first?.path ?? [], first?.value));
    // What is left of a replaced parent may not have the next field; then the first change stands alone.
    for (const { path, value } of rest) {
      const merged = safely(() =>
        stringify({ ...(readYaml(text)[0]?.value as object), ...pickTop(replaced(path, value), path) }),
      );
      if (merged !== null) text = merged;
    }
    return text;
  });

function pickTop(manifest: object, path: Path): object {
  const top = String(path[0] ?? '');
  return { [top]: (manifest as Record<string, unknown>)[top] };
}

function safely<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}

/** Each field with each wrong value, once. */
export function* everyFieldEveryValue(): Generator<{
  readonly path: Path;
  readonly value: unknown;
  readonly text: string;
}> {
  for (const path of FIELDS) {
    for (const value of [...NASTY, undefined]) yield { path, value, text: stringify(replaced(path, value)) };
  }
}
