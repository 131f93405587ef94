/** The generated documents in the repository are those that the source makes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../src/api/errors.ts';
import { generatedDocuments } from './docs/documents.ts';
import { ROOT } from './processes.mjs';

const documents = await generatedDocuments();

describe('generated documents', () => {
  it.each([...documents.keys()])('%s is up to date (npm run docs writes it)', (path) => {
    expect(readFileSync(join(ROOT, path), 'utf8')).toBe(documents.get(path));
  });

  it('ERRORS.md has every code once, API.md links to sections that exist', () => {
    const errors = documents.get('docs/ERRORS.md') ?? '';
    for (const code of Object.keys(ERRORS)) expect(errors.split(`| \`${code}\` |`)).toHaveLength(2);
    const api = documents.get('docs/API.md') ?? '';
    const headings = [...api.matchAll(/^## (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replace(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    );
    const links = [...api.matchAll(/\]\(#([^)]+)\)/g)].map(([, link]) => link);
    expect(links.length).toBeGreaterThan(10);
    for (const link of links) expect(headings).toContain(link);
  });
});
