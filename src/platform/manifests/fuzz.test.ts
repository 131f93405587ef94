// No input makes the parser throw or hang, every error has a place inside the file, and what is accepted stays accepted.
import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { toNamespaceConfig } from '../../api/locknamespace/effective.ts';
import { validateLockNamespace } from '../../api/locknamespace/validate.ts';
import { formatFindings } from './format.ts';
import { VALID } from './manifest.fixture.ts';
import { type ParsedManifests, parseManifests } from './parse.ts';
import { readYaml } from './yaml-source.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));

function check(source: string | Uint8Array): ParsedManifests {
  const parsed = parseManifests(source, 'f.yaml');
  const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
  const lines = text.split('\n');
  for (const { line, column, message } of [...parsed.errors, ...parsed.notices]) {
    const inLine = lines[line - 1];
    expect(inLine, `line ${line} of ${lines.length}`).toBeDefined();
    expect(column).toBeGreaterThanOrEqual(1);
    expect(column).toBeLessThanOrEqual((inLine?.length ?? 0) + 1);
    expect(message).not.toBe('');
    expect(message).not.toMatch(/undefined|\[object/);
  }
  expect(formatFindings(parsed.errors).split('\n').length).toBe(Math.max(1, parsed.errors.length));
  for (const { lockNamespace } of parsed.namespaces) {
    const again = validateLockNamespace(JSON.parse(JSON.stringify(lockNamespace)));
    expect(again).toEqual({ ok: true, lockNamespace });
    const config = toNamespaceConfig(lockNamespace, { kind: 'checked', namespacesOf: () => ['x'] });
    expect(JSON.parse(JSON.stringify(config))).toEqual(config);
    expect(config.ttlMsMin <= config.ttlMs && config.ttlMs <= config.ttlMsMax).toBe(true);
  }
  return parsed;
}

const snippet = fc.oneof(
  fc.constantFrom(
    '\n',
    ' ',
    '\t',
    ':',
    '- ',
    '---\n',
    '...\n',
    '&a ',
    '*a',
    '!!',
    '|',
    '>',
    '"',
    "'",
    '{',
    '}',
    '[',
    ']',
  ),
  fc.constantFrom(
    '#',
    '%',
    '@',
    '`',
    '? ',
    ', ',
    '<<: ',
    '~',
    '\r',
    '\u0000',
    '\ufeff',
    '\ud800',
    '\u2028',
    '%YAML 1.2\n---\n',
  ),
  fc.constantFrom(
    '__proto__: 1',
    'constructor',
    '.inf',
    '-0',
    '0x7f',
    '1e999',
    '9'.repeat(400),
    'null',
    'yes',
    '2026-01-01',
  ),
  fc.string({ maxLength: 8, unit: 'binary' }),
);

/** Some edits of a text: each cuts out up to 12 characters somewhere and puts something in their place. */
const edited = fc
  .array(fc.record({ at: fc.nat(VALID.length), cut: fc.nat(12), put: snippet }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((edits) =>
    edits.reduce((text, { at, cut, put }) => text.slice(0, at) + put + text.slice(at + cut), VALID),
  );

const validObject = readYaml(VALID)[0]?.value;

/** The valid manifest with any value put at any place of it. */
const replaced = fc
  .tuple(fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }), fc.jsonValue())
  .map(([route, value]) => {
    const copy = JSON.parse(JSON.stringify(validObject));
    let parent = copy;
    for (const [index, step] of route.entries()) {
      const keys = Object.keys(parent);
      const key = keys[step % keys.length];
      if (key === undefined) break;
      const child = parent[key];
      if (index === route.length - 1 || typeof child !== 'object' || child === null) {
        parent[key] = value;
        break;
      }
      parent = child;
    }
    return copy;
  });

describe(`the parser on anything (LEASEHOLD_SEED=${seed})`, () => {
  it('survives random bytes', () => {
    const bytes = fc.uint8Array({ maxLength: 400 });
    fc.assert(
      fc.property(bytes, (source) => void check(source)),
      { seed, numRuns: 1_000 },
    );
  });

  it('survives random text of YAML pieces', () => {
    const pieces = fc.array(snippet, { maxLength: 60 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(pieces, (source) => void check(source)),
      { seed, numRuns: 1_500 },
    );
  });

  it('survives a valid manifest with random edits', () => {
    const outcomes = { valid: 0, refused: 0 };
    const property = fc.property(edited, (source) => {
      outcomes[check(source).errors.length === 0 ? 'valid' : 'refused'] += 1;
    });
    fc.assert(property, { seed, numRuns: 800 });
    // Both ways were taken, or the edits would prove little. About 31 of 800 stay valid, give or take 6.
    expect(Math.min(outcomes.valid, outcomes.refused)).toBeGreaterThan(5);
  });

  it('survives any value in any place, as YAML and as JSON alike', () => {
    const property = fc.property(replaced, (object) => {
      const fromJson = check(JSON.stringify(object));
      const fromYaml = check(stringify(object, { version: '1.1', aliasDuplicateObjects: false }));
      expect(fromYaml.errors.length).toBe(fromJson.errors.length);
      expect(fromYaml.namespaces.map(({ lockNamespace }) => lockNamespace)).toEqual(
        fromJson.namespaces.map(({ lockNamespace }) => lockNamespace),
      );
    });
    fc.assert(property, { seed, numRuns: 500 });
  });
});
