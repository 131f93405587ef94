/** The configuration of a sidecar: what is wrong between its fields. */
import { expect, test } from 'vitest';
import { issueLines, wordsOf } from '../../api/issues.ts';
import { sidecarConfig, sidecarConfigProblems } from './config.ts';

const GOOD = { data: 'd', namespaces: [{ alias: 'payouts', endpoints: ['127.0.0.1:1'] }] };

function problems(differs: object): readonly string[] {
  const parsed = sidecarConfig.safeParse({ ...GOOD, ...differs }, { error: wordsOf });
  return parsed.success ? sidecarConfigProblems(parsed.data) : issueLines(sidecarConfig, parsed.error.issues);
}

test('a good one has no problems, nor has one that is open because it says so', () => {
  expect(problems({})).toEqual([]);
  expect(problems({ token: 't', insecure: true })).toEqual([]);
  expect(problems({ token: 't', ca: 'c', health: '0.0.0.0:7071' })).toEqual([]);
});

test('fields that do not fit each other are told together', () => {
  const namespaces = [{ alias: 'payouts', endpoints: ['127.0.0.1:1'], ttl: '2m' }, { alias: 'jobs' }];
  const found = problems({ port: 7071, health: '0.0.0.0:7071', token: 't', namespaces });
  expect(found).toEqual([
    expect.stringMatching(/^health: port 7071 is that of the lock API/),
    expect.stringMatching(/^token: .*give ca/),
    expect.stringMatching(/^namespaces: the ttl of payouts is 2m, and may be 5s to 60s/),
    expect.stringMatching(/^namespaces: jobs needs either endpoints or groups/),
  ]);
});

test('a default that no session may have, and a name that nothing would look at, are refused', () => {
  const named = (differs: object) => problems({ namespaces: [{ ...GOOD.namespaces[0], ...differs }] });
  for (const maxHold of ['500ms', '1000h']) {
    const line = `namespaces: the maxHold of payouts is ${maxHold}, and may be 1s to 30d`;
    expect(named({ maxHold })).toEqual([line.replace('30d', '720h')]);
  }
  expect(named({ maxHold: '720h' })).toEqual([]);
  const group = (name: string, port: number) => ({
    name,
    buckets: ['0-4095'],
    endpoints: [`127.0.0.1:${port}`],
  });
  const groups = [group('a', 1), group('b', 2)];
  expect(problems({ namespaces: [{ alias: 'payouts', groups, serverName: 'x' }] })).toEqual([
    'namespaces: the serverName of payouts goes with each of its groups',
  ]);
});

test('a misspelt key within a list has its place and the likely one', () => {
  expect(problems({ namespaces: [{ alias: 'payouts', endpoint: ['127.0.0.1:1'] }], dta: 'x' })).toEqual([
    'namespaces.0.endpoint: there is no such key; did you mean endpoints?',
    'dta: there is no such key; did you mean data?',
  ]);
});
