// Files and folders: what is read, in which order, and that nothing half right is served.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { formatFindings } from './format.ts';
import { type LoadResult, loadManifests } from './load.ts';
import { minimal } from './manifest.fixture.ts';
import { FILE_BYTES_MAX } from './yaml-source.ts';

const listing = vi.hoisted(() => ({ fails: null as string | null }));
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const readdir = (...args: unknown[]): unknown =>
    listing.fails === null
      ? Reflect.apply(real.readdir, real, args)
      : Promise.reject(Object.assign(new Error('no'), { code: listing.fails }));
  return { ...real, readdir };
});

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-manifests-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string, content: string | Uint8Array) => writeFileSync(join(folder, name), content);
const names = (result: LoadResult) =>
  result.ok ? result.namespaces.map(({ lockNamespace }) => lockNamespace.metadata.name) : result;
const report = (result: LoadResult) =>
  result.ok
    ? 'no errors'
    : formatFindings(result.errors).replaceAll(`${folder}/`, '').replaceAll(folder, 'DIR');

describe('loadManifests', () => {
  it('reads a file, whatever its name, with the place of each namespace', async () => {
    put('manifest', `${minimal('a')}---\n${minimal('b')}`);
    const result = await loadManifests({ paths: [join(folder, 'manifest')] });
    expect(names(result)).toEqual(['a', 'b']);
    expect(result.ok && result.namespaces[1]?.source).toEqual({
      file: join(folder, 'manifest'),
      document: 2,
      line: 8,
      column: 18,
    });
  });

  it('reads *.yaml, *.yml and *.json of a folder in order of names, and nothing else', async () => {
    put('2.yml', minimal('b'));
    put('10.yaml', minimal('a'));
    put('3.json', JSON.stringify({ apiVersion: 'v1', kind: 'Secret' }));
    put('notes.txt', 'not: [yaml');
    put('.hidden.yaml', 'not: [yaml');
    put('a.yaml~', 'not: [yaml');
    symlinkSync('/nowhere', join(folder, '.#2.yml'));
    mkdirSync(join(folder, 'inner.yaml'));
    put('inner.yaml/c.yaml', minimal('c'));
    const result = await loadManifests({ paths: [folder] });
    expect(names(result)).toEqual(['a', 'b']);
    expect(result.notices.length).toBe(1);
    expect(names(await loadManifests({ paths: [folder], recursive: true }))).toEqual(['a', 'b', 'c']);
  });

  it('follows links to files (as mounted ConfigMaps are), not to folders', async () => {
    mkdirSync(join(folder, '..data'));
    put('..data/a.yaml', minimal('a'));
    symlinkSync('..data/a.yaml', join(folder, 'a.yaml'));
    symlinkSync('.', join(folder, 'loop'));
    expect(names(await loadManifests({ paths: [folder], recursive: true }))).toEqual(['a']);
  });

  it('reads a file once, even if it is named twice', async () => {
    put('a.yaml', minimal('a'));
    expect(names(await loadManifests({ paths: [folder, join(folder, 'a.yaml'), folder] }))).toEqual(['a']);
  });

  it('takes a folder that cannot be listed for no empty one: what it holds would look removed', async () => {
    put('a.yaml', minimal('a'));
    mkdirSync(join(folder, 'more'));
    put('more/b.yaml', minimal('b'));
    const paths = [join(folder, 'a.yaml'), join(folder, 'more')];
    // As when this process has no file descriptors left, or its account may not list the folder.
    listing.fails = 'EMFILE';
    const refused = await loadManifests({ paths });
    listing.fails = null;
    expect(report(refused)).toBe('more: cannot be read: EMFILE');
    expect(names(await loadManifests({ paths }))).toEqual(['a', 'b']);
    expect(refused.contentHash).not.toBe((await loadManifests({ paths })).contentHash);
  });

  it('reports the errors of all files, and serves none of them', async () => {
    put('a.yaml', minimal('A'));
    put('b.yaml', minimal('b'));
    put('c.yaml', 'kind: LockNamespace\nspec: [');
    const result = await loadManifests({ paths: [folder, join(folder, 'missing.yaml')] });
    expect(report(result)).toMatch(
      /^a\.yaml:3:18 .*\nc\.yaml:2:\d+ .*\nmissing\.yaml: cannot be read: there is no such/,
    );
    expect('namespaces' in result).toBe(false);
  });

  it('refuses two namespaces of one alias and names both places', async () => {
    put('a.yaml', `${minimal('x')}---\n${minimal('twice')}`);
    put('b.yaml', minimal('twice').replace('name: twice', 'name: twice, namespace: other'));
    expect(report(await loadManifests({ paths: [folder] }))).toBe(
      'b.yaml:3:18 metadata.name: name twice (of other/twice) is taken by default/twice at a.yaml:8:18: the name is the alias under which applications lock, so rename or remove one',
    );
  });

  it('refuses to serve nothing', async () => {
    expect(report(await loadManifests({ paths: [folder] }))).toMatch(/^DIR: no LockNamespace was found/);
    put('a.yaml', 'apiVersion: v1\nkind: ConfigMap\n');
    expect(report(await loadManifests({ paths: [folder] }))).toMatch(/^DIR: no LockNamespace was found/);
  });

  it('refuses files that are too large, too many, or none, without reading on', async () => {
    put('large.yaml', 'x'.repeat(FILE_BYTES_MAX * 3));
    symlinkSync('/dev/zero', join(folder, 'zero.yaml'));
    const text = report(await loadManifests({ paths: [folder] }));
    expect(text).toMatch(/^large\.yaml:1:1 a manifest file must be at most 262144 bytes/);
    expect(text).toMatch(/\nzero\.yaml: cannot be read: it is neither a file nor a folder$/);
  });

  it('stops at a thousand files', async () => {
    for (let i = 0; i < 1_005; i++) put(`${i}.yaml`, '');
    put('0.yaml', minimal('a'));
    expect(report(await loadManifests({ paths: [folder] }))).toMatch(
      /^\d+\.yaml: more than 1000 files: join some$/,
    );
  });

  it('gives equal hashes exactly for equal content', async () => {
    put('a.yaml', minimal('a'));
    const load = () => loadManifests({ paths: [folder] });
    const first = (await load()).contentHash;
    put('a.yaml', minimal('a'));
    expect((await load()).contentHash).toBe(first);
    put('a.yaml', `${minimal('a')}#`);
    expect((await load()).contentHash).not.toBe(first);
    put('a.yaml', minimal('a'));
    put('b.yaml', '');
    expect((await load()).contentHash).not.toBe(first);
  });
});
