/** docs/CLIENT.md shows the examples as they are run, and names every option and every way of losing a lock. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const page = read('docs/CLIENT.md');

test('each example stands there word for word', () => {
  const shown = new Map(
    [...page.matchAll(/<!-- (examples\/\S+) -->\n```\w+\n(.*?)```/gs)].map(([, file = '', text = '']) => [
      file,
      text,
    ]),
  );
  const files = globSync('examples/**/*.{mjs,py,go}', { cwd: ROOT }).sort();
  expect(files).toHaveLength(5);
  expect([...shown.keys()].sort()).toEqual(files);
  for (const file of files) expect(shown.get(file), `${file} differs from docs/CLIENT.md`).toBe(read(file));
});

test('each option, each call and each kind of loss has its place in a table', () => {
  const options = [...read('src/client/options.ts').matchAll(/^ {2}readonly (\w+)\?:/gm)].map(
    ([, name]) => name,
  );
  expect(options.length).toBeGreaterThanOrEqual(13);
  for (const option of options) expect(page).toContain(`| \`${option}\` |`);
  const losses = /export type LossCause = (.+);/.exec(read('src/client/errors.ts'))?.[1]?.match(/\w+/g) ?? [];
  expect(losses).toHaveLength(6);
  for (const loss of losses) expect(page).toContain(`\`${loss}\``);
  const classBody = /^export class Client .*?^}/ms.exec(read('src/client/client.ts'))?.[0] ?? '';
  const methods = [...classBody.matchAll(/^ {2}(?:async )?\*?([a-z]\w+)(?:<T>)?\(/gm)].map(
    ([, name = '']) => name,
  );
  for (const name of methods.filter((method) => method !== 'constructor'))
    expect(page).toContain(`\`client.${name}(`);
  expect(methods).toContain('withLock');
});
