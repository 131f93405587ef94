import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isInstalled, tryLock, writeStamp } from './setup.mjs';

const PID_OF_NOBODY = 2 ** 22 + 1; // above the highest pid that Linux and macOS give out

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-setup-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the stamp', () => {
  it('tells whether node_modules belongs to this package-lock.json', () => {
    writeFileSync(join(folder, 'package-lock.json'), '{"a":1}');
    expect(isInstalled(folder)).toBe(false);
    writeStamp(folder);
    expect(isInstalled(folder)).toBe(true);
    writeFileSync(join(folder, 'package-lock.json'), '{"a":2}');
    expect(isInstalled(folder)).toBe(false);
  });

  it('is missing when only node_modules exists, as after a broken install', () => {
    writeFileSync(join(folder, 'package-lock.json'), '{}');
    mkdirSync(join(folder, 'node_modules'));
    expect(isInstalled(folder)).toBe(false);
  });
});

describe('the lock', () => {
  it('is taken once, and names its owner', () => {
    const file = join(folder, 'lock');
    expect(tryLock(file)).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe(String(process.pid));
    expect(tryLock(file)).toBe(false);
  });

  it('is taken over from a dead owner', () => {
    const file = join(folder, 'lock');
    writeFileSync(file, String(PID_OF_NOBODY));
    expect(tryLock(file)).toBe(true);
    expect(readFileSync(file, 'utf8')).toBe(String(process.pid));
  });
});
