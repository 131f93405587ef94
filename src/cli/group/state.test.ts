import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageError } from '../errors.ts';
import { GROUP_STATE_FILE } from './plan.ts';
import { readGroupState } from './state.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-group-state-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each(['', '{', 'null', '{"format":2}', '{"format":1}'])(
  'a file that is damaged or not ours is named: %j',
  (text) => {
    const path = join(folder, GROUP_STATE_FILE);
    writeFileSync(path, text);
    expect(() => readGroupState(folder)).toThrow(UsageError);
    expect(() => readGroupState(folder)).toThrow(path);
  },
);

test('a folder without a group is one', () => {
  expect(readGroupState(folder)).toBeNull();
});
