/** docs/CONFIGURATION.md names every key that the two configuration files have, and no other. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type * as z from 'zod';
import { serverConfig, serverConfigProblems } from './server/config.ts';
import { sidecarConfig, sidecarConfigProblems } from './sidecar/config.ts';

const PAGE = readFileSync(new URL('../../docs/CONFIGURATION.md', import.meta.url), 'utf8');
/** Told on pages of their own, or in the row of the key above. */
const WHOLE = ['audit', 'tls', 'tokens', 'listen', 'peers', 'namespaces.groups'];

function inner(schema: z.ZodType): z.ZodType {
  const { def } = schema as unknown as { def: { innerType?: z.ZodType; element?: z.ZodType } };
  const below = def.innerType ?? def.element;
  return below === undefined ? schema : inner(below);
}

function keysOf(schema: z.ZodType, path = ''): string[] {
  const { shape } = inner(schema) as unknown as { shape?: Record<string, z.ZodType> };
  if (shape === undefined || WHOLE.includes(path)) return [path];
  return Object.entries(shape).flatMap(([key, value]) => keysOf(value, path === '' ? key : `${path}.${key}`));
}

test.each([
  ['Lock server', serverConfig],
  ['Sidecar', sidecarConfig],
])('%s', (title, schema) => {
  const part = PAGE.split('\n## ').find((section) => section.startsWith(title)) ?? '';
  const told = [...part.matchAll(/^\| `([^`]+)` \|/gm)].map(([, key]) => key as string);
  expect(told.sort()).toEqual(keysOf(schema).sort());
});

test('its examples are complete and valid', () => {
  const [server, sidecar] = [...PAGE.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) =>
    parse(text as string),
  );
  expect(serverConfigProblems(serverConfig.parse(server))).toEqual([]);
  expect(sidecarConfigProblems(sidecarConfig.parse(sidecar))).toEqual([]);
});
