import { describe, expect, it } from 'vitest';
import { violationsIn } from './import-order.mjs';

describe('import order', () => {
  it.each([
    ['src/core/a.ts', "import type { Name } from '../api/names.ts';"],
    ['src/core/a.ts', "import { createHash } from 'node:crypto';"],
    ['src/server/relay/a.ts', "export * from '../../log/port.ts';"],
    ['src/server/relay/a.ts', "import { b } from '../leader/b.ts';"],
    ['src/platform/clock.ts', "import { performance } from 'node:perf_hooks';"],
    ['src/sidecar/http.ts', "import express from 'express';"],
  ])('allows in %s: %s', (file, text) => {
    expect(violationsIn(file, text)).toEqual([]);
  });

  it.each([
    ['src/core/a.ts', "import type { Log } from '../log/port.ts';", 'src/core must not import from src/log'],
    ['src/log/a.ts', "export { b } from '../server/b.ts';", 'src/log must not import from src/server'],
    ['src/log/a.ts', "type B = import('../server/b.ts').B;", 'src/log must not import from src/server'],
    ['src/client/a.ts', "import '../platform/b.ts';", 'src/client must not import from src/platform'],
    ['src/cli/a.ts', "import { b } from '../../test/b.ts';", 'src/cli must not import from outside src'],
    ['src/api/a.ts', "import { readFileSync } from 'node:fs';", 'src/api is pure'],
    ['src/history/a.ts', "import { readFileSync } from 'fs';", 'src/history is pure'],
    ['src/server/a.ts', "const t = await import('node:timers/promises');", 'use the port in src/platform'],
    ['src/misc/a.ts', "import { b } from './b.ts';", 'src/misc has no place in the order'],
  ])('refuses in %s: %s', (file, text, problem) => {
    const problems = violationsIn(file, `// first line\n${text}\n`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`${file}:2`);
    expect(problems[0]).toContain(problem);
  });
});
