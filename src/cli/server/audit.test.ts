/** Where the audit goes, as it is written in a configuration: what is refused, and what is never printed. */
import { expect, test } from 'vitest';
import { auditConfig, auditConfigProblems, redactedAudit } from './audit.ts';

const issues = (config: object): string[] =>
  auditConfig.safeParse(config).error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ??
  [];

test('each sink has its own settings, with defaults', () => {
  expect(auditConfig.parse({ sink: 'stdout' })).toEqual({ sink: 'stdout' });
  expect(auditConfig.parse({ sink: 'file', path: 'a' })).toEqual({ sink: 'file', path: 'a', fsync: 'batch' });
  expect(auditConfig.parse({ sink: 'http', url: 'https://audit/in' })).toMatchObject({
    headers: {},
    timeoutMs: 10_000,
  });
  expect(auditConfig.parse({ sink: 'postgresql', url: 'postgresql://db/x' })).toMatchObject({
    table: 'leasehold_audit',
    createTable: true,
  });
});

test.each([
  [{ sink: 'kafka' }, 'sink'],
  [{ sink: 'file' }, 'path'],
  [{ sink: 'file', path: 'a', url: 'http://x' }, 'url'],
  [{ sink: 'http', url: 'ftp://x/' }, 'url'],
  [{ sink: 'http', url: 'http://x/', headers: { 'a b': 'c' } }, 'headers'],
  [{ sink: 'postgresql', url: 'postgresql://db/x', table: 'a; DROP TABLE b' }, 'table'],
])('%j is refused, and the field is named', (config, field) => {
  expect(issues(config).join('\n')).toContain(field);
});

test('what holds between fields', () => {
  expect(auditConfigProblems(undefined)).toEqual([]);
  const http = auditConfig.parse({
    sink: 'http',
    url: 'https://user:secret@audit/in',
    headers: { 'Leasehold-Group': 'x', authorization: 'Bearer s' },
  });
  expect(auditConfigProblems(http)).toEqual([
    'audit.headers: Leasehold-Group is set by the exporter',
    'audit.url: a user or password in it is not sent; write an authorization header',
  ]);
});

test('no secret is printed', () => {
  const configs = [
    {
      sink: 'http',
      url: 'https://u:secret@audit/in?key=secret',
      headers: { authorization: 'Bearer secret' },
    },
    { sink: 'postgresql', url: 'postgresql://u:secret@db/x?password=secret' },
  ];
  for (const config of configs) {
    const shown = JSON.stringify(redactedAudit(auditConfig.parse(config)));
    expect(shown).not.toContain('secret');
    expect(shown).toContain('redacted');
  }
});
