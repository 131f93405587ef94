// Changes on disk, in the ways editors, Git, kubectl and Kubernetes make them.
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type LoadResult, loadManifests } from './load.ts';
import { minimal } from './manifest.fixture.ts';
import { type ManifestWatch, type WatchOptions, watchManifests } from './watch.ts';

const SETTLE_MS = 30;
const WAIT = { timeout: 5_000, interval: 10 };

let folder = '';
let told: LoadResult[] = [];
let watching: ManifestWatch | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-watch-'));
  told = [];
});
afterEach(() => {
  watching?.close();
  rmSync(folder, { recursive: true, force: true });
});

const put = (name: string, content: string) => writeFileSync(join(folder, name), content);
const names = (result: LoadResult | undefined) =>
  result?.ok ? result.namespaces.map(({ lockNamespace }) => lockNamespace.metadata.name) : 'invalid';

/** Polls so seldom that only notifications can be the cause, unless `options` say otherwise. */
async function start(path = folder, options: Partial<WatchOptions> = {}): Promise<void> {
  const paths = [path];
  const loaded = await loadManifests({ paths });
  const onChange = (result: LoadResult) => void told.push(result);
  watching = watchManifests({ paths, loaded, onChange, settleMs: SETTLE_MS, pollMs: 60_000, ...options });
  // Let the first reading happen, so that what follows is a change while watching.
  await sleep(100);
}

describe('watchManifests', () => {
  it('tells a file written in place, and nothing when nothing changed', async () => {
    put('a.yaml', minimal('a'));
    await start();
    utimesSync(join(folder, 'a.yaml'), new Date(), new Date());
    put('a.yaml', minimal('a'));
    put('unrelated.txt', 'x');
    await sleep(10 * SETTLE_MS);
    expect(told).toEqual([]);
    put('a.yaml', minimal('b'));
    await vi.waitFor(() => expect(told.length).toBe(1), WAIT);
    expect(names(told[0])).toEqual(['b']);
  });

  it('tells files added, removed, and replaced by renaming', async () => {
    put('a.yaml', minimal('a'));
    await start();
    put('b.yaml', minimal('b'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['a', 'b']), WAIT);
    put('.a.yaml.swp', minimal('c'));
    renameSync(join(folder, '.a.yaml.swp'), join(folder, 'a.yaml'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['c', 'b']), WAIT);
    unlinkSync(join(folder, 'b.yaml'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['c']), WAIT);
  });

  it('watches a single file through replacements', async () => {
    put('a.yaml', minimal('a'));
    await start(join(folder, 'a.yaml'));
    for (const name of ['b', 'c', 'd']) {
      put('new', minimal(name));
      renameSync(join(folder, 'new'), join(folder, 'a.yaml'));
      await vi.waitFor(() => expect(names(told.at(-1))).toEqual([name]), WAIT);
    }
  });

  it('tells a ConfigMap volume that was switched', async () => {
    for (const name of ['one', 'two']) {
      mkdirSync(join(folder, `..${name}`));
      put(`..${name}/a.yaml`, minimal(name));
    }
    symlinkSync('..one', join(folder, '..data'));
    symlinkSync('..data/a.yaml', join(folder, 'a.yaml'));
    await start();
    symlinkSync('..two', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['two']), WAIT);
  });

  it('tells an invalid state, and the way back from it', async () => {
    put('a.yaml', minimal('a'));
    await start();
    put('a.yaml', minimal('a').replace('Efficiency', 'Speed'));
    await vi.waitFor(() => expect(told.at(-1)?.ok).toBe(false), WAIT);
    put('a.yaml', minimal('a'));
    await vi.waitFor(() => expect(told.at(-1)?.ok).toBe(true), WAIT);
    expect(told.length).toBe(2);
  });

  it('waits until nothing changes any more', async () => {
    put('a.yaml', minimal('a'));
    await start(folder, { settleMs: 200 });
    for (let i = 0; i < 12; i++) {
      put('a.yaml', `${minimal('a')}# ${i}`);
      await sleep(40);
    }
    expect(told).toEqual([]);
    put('a.yaml', minimal('z'));
    await vi.waitFor(() => expect(told.length).toBe(1), WAIT);
    expect(names(told[0])).toEqual(['z']);
  });

  it('finds by polling what no notification tells: a folder that is replaced, or comes late', async () => {
    const inner = join(folder, 'inner');
    await start(inner, { pollMs: 50 });
    expect(told).toEqual([]);
    mkdirSync(inner);
    put('inner/a.yaml', minimal('a'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['a']), WAIT);
    mkdirSync(join(folder, 'next'));
    put('next/b.yaml', minimal('b'));
    rmSync(inner, { recursive: true });
    renameSync(join(folder, 'next'), inner);
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['b']), WAIT);
    put('inner/b.yaml', minimal('c'));
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['c']), WAIT);
  });

  it('tells a change between loading and watching', async () => {
    put('a.yaml', minimal('a'));
    const loaded = await loadManifests({ paths: [folder] });
    put('a.yaml', minimal('b'));
    await start(folder, { loaded });
    await vi.waitFor(() => expect(names(told.at(-1))).toEqual(['b']), WAIT);
  });

  it('tells nothing after it was closed', async () => {
    put('a.yaml', minimal('a'));
    await start(folder, { pollMs: 20 });
    put('a.yaml', minimal('b'));
    watching?.close();
    await sleep(300);
    expect(told).toEqual([]);
  });
});
