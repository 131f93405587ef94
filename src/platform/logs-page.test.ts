/** docs/LOGS.md against the program: every message and field that the source writes is in its tables, and no other is. */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url).pathname;
const page = readFileSync(`${ROOT}docs/LOGS.md`, 'utf8');

interface LogCall {
  readonly place: string;
  readonly level: string;
  /** Keys of the object, `...name` and a plain name included. */
  readonly fields: readonly string[];
  readonly message: string;
}

const CALL = /ogger\.(?:debug|info|warn|error)\(/g;
const WHOLE_CALL = /ogger\.(debug|info|warn|error)\(\s*(\{[^{}]*\}|\w+),\s*'([^']+)',?\s*\)/g;

/** The keys of an object literal without nesting, or the name itself. */
function fieldsIn(text: string, source: string): readonly string[] {
  if (/^\w+$/.test(text)) {
    const literal = new RegExp(`const ${text} = (\\{[^{}]*\\});`).exec(source)?.[1];
    expect(literal, `the object ${text} is made where it is logged`).toBeDefined();
    return fieldsIn(literal ?? '', source);
  }
  const parts = text.slice(1, -1).split(',');
  return parts.flatMap((part) => {
    const [key = ''] = part.trim().split(':');
    if (key === '') return [];
    return key.startsWith('...') ? fieldsIn(key.slice(3), source) : [key];
  });
}

const sources = globSync('src/**/*.ts', { cwd: ROOT }).filter(
  (file) => !/\.(test|fixture)\.ts$/.test(file) && !file.startsWith('src/platform/'),
);

const calls: readonly LogCall[] = sources.flatMap((file) => {
  const source = readFileSync(ROOT + file, 'utf8');
  const found = [...source.matchAll(WHOLE_CALL)];
  const message = 'a log call has an object of fields and a constant message in single quotes';
  expect(found.length, `${file}: ${message}`).toBe([...source.matchAll(CALL)].length);
  return found.map(([, level = '', fields = '', text = '']) => {
    return { place: file, level, fields: fieldsIn(fields, source), message: text };
  });
});

const labels = sources.flatMap((file) => {
  const source = readFileSync(ROOT + file, 'utf8');
  return [...source.matchAll(/labelled\([^{]*(\{[^{}]*(?:\$\{[^{}]*\}[^{}]*)*\})\)/g)].flatMap(
    ([, text = '']) => fieldsIn(text, source),
  );
});

/** What pino adds to every line (system-runtime.ts). */
const ALWAYS = ['level', 'time', 'msg'];

it('every field is in the table, and no other', () => {
  const documented = [...page.matchAll(/^\| `(\w+)` \| [\w ]+ \| .+ \|$/gm)].map(([, name]) => name);
  const written = new Set([...ALWAYS, ...labels, ...calls.flatMap(({ fields }) => fields)]);
  expect(documented.toSorted()).toEqual([...written].toSorted());
});

it('every message is in the table with its level, and no other', () => {
  const documented = [...page.matchAll(/^\| (\w+) \| `(.+?)` \| .+ \|$/gm)].map(
    (row) => `${row[1]} ${row[2]}`,
  );
  const written = new Set(calls.map(({ level, message }) => `${level} ${message}`));
  expect(documented.toSorted()).toEqual([...written].toSorted());
  expect(documented.length).toBeGreaterThan(10);
});
