import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UsageError } from '../errors.ts';
import { findLog } from './find-log.ts';

let data = '';

function addLog(folder: string): string {
  const path = join(data, folder);
  mkdirSync(path);
  writeFileSync(join(path, 'log.db'), '');
  return path;
}

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'leasehold-find-log-'));
  writeFileSync(join(data, 'sidecar.jsonl'), '');
  mkdirSync(join(data, 'notes'));
});

afterEach(() => rmSync(data, { recursive: true }));

test('the folder of a log is meant itself; of a data folder the only log, or the one named', () => {
  const jobs = addLog('batch.jobs');
  expect(findLog(jobs, undefined)).toBe(jobs);
  expect(findLog(data, undefined)).toBe(jobs);
  const payouts = addLog('payments.payouts');
  expect(findLog(data, 'payouts')).toBe(payouts);
});

test('what is missing or ambiguous is said, with the names to choose from', () => {
  expect(() => findLog(data, undefined)).toThrow(UsageError);
  addLog('payments.payouts');
  addLog('batch.jobs');
  expect(() => findLog(data, undefined)).toThrow('choose with --namespace: jobs, payouts');
  expect(() => findLog(data, 'batch.jobs')).toThrow('it holds: jobs, payouts');
  addLog('ci.jobs');
  expect(() => findLog(data, 'jobs')).toThrow('name the folder of one of these logs: batch.jobs, ci.jobs');
});

test('a folder that is not there is wrong usage', () => {
  const nowhere = join(data, 'nowhere');
  expect(() => findLog(nowhere, undefined)).toThrow(new UsageError(`there is no folder ${nowhere}`));
});
