/** Folders are made whole, or refused at once with their name and the reason. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FolderError, makeFolder } from './folders.ts';

let root = '';

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'leasehold-folders-'));
});

afterEach(() => {
  chmodSync(root, 0o700);
  rmSync(root, { recursive: true });
});

test('it is made with those above it, for its owner only; again it is there already', () => {
  const folder = join(root, 'a/b/c');
  expect(makeFolder(folder)).toEqual([join(root, 'a'), join(root, 'a/b'), folder]);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(makeFolder(folder)).toEqual([]);
  symlinkSync(folder, join(root, 'link'));
  expect(makeFolder(join(root, 'link'))).toEqual([]);
});

test('a file in its place, or in the way to it, is named', () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => makeFolder(file)).toThrow(`${file} cannot be made or written to: a file is in its place`);
  expect(() => makeFolder(join(file, 'x'))).toThrow(`a file is in its place (${file})`);
  expect(() => makeFolder(join(root, 'x'.repeat(300)))).toThrow('too long');
  symlinkSync(join(root, 'circle'), join(root, 'circle'));
  expect(() => makeFolder(join(root, 'circle', 'x'))).toThrow(/circle/);
});

test.runIf(readdirSync('/').includes('proc'))('a parent that takes no folders is no endless loop', () => {
  const startedMs = performance.now();
  expect(() => makeFolder('/proc/x')).toThrow(FolderError);
  expect(() => makeFolder('/proc/x/y')).toThrow('/proc/x/y cannot be made or written to: ');
  expect(performance.now() - startedMs).toBeLessThan(1_000);
});

test.runIf(process.getuid?.() !== 0)(
  'one that may not be written to is refused before anything is tried',
  () => {
    chmodSync(root, 0o500);
    expect(() => makeFolder(root)).toThrow('this account may not write there');
  },
);
