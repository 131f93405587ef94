import { expect, test } from 'vitest';
import { fields, person, table, wallTime, word } from './table.ts';

test('plain words stay as they are, all others are quoted and cannot leave their place', () => {
  expect(word('merchant-48213')).toBe('merchant-48213');
  expect(word('a/b:c%20*')).toBe('a/b:c%20*');
  expect(word('größe')).toBe('größe');
  expect(word('')).toBe('""');
  expect(word('two words')).toBe('"two words"');
  expect(word('a=b')).toBe('"a=b"');
  expect(word('say "hi"')).toBe('"say \\"hi\\""');
  expect(word('red\u001b[31m')).toBe('"red\\u{1b}[31m"');
  expect(word('line\nbreak\u2028')).toBe('"line\\u{a}break\\u{2028}"');
  expect(word('\u202egnp.exe')).toBe('"\\u{202e}gnp.exe"');
  expect(word('half \ud800')).toBe('"half \\u{d800}"');
});

test('who gave no name is unnamed', () => {
  expect(person('')).toBe('(unnamed)');
  expect(person('night job')).toBe('"night job"');
});

test('fields that say nothing are left out', () => {
  const object = {
    type: 'x',
    name: 'a b',
    session: 0,
    token: 7,
    now: false,
    unsafe: true,
    acks: [],
    keys: ['k', 'l m'],
  };
  expect(fields(object, ['type'])).toBe('name="a b" token=7 unsafe=true keys=k,"l m"');
  expect(fields({ config: null, identity: { account: 'dev/x', podUid: '' } }, [])).toBe(
    'config=none identity={account=dev/x}',
  );
});

test('columns are aligned, numbers to the right, and no line ends in spaces', () => {
  expect(
    table(
      ['ALIAS', 'HELD', 'NOTE'],
      [
        ['payouts', '3', ''],
        ['ci', '1200', 'busy'],
      ],
    ),
  ).toEqual(['ALIAS     HELD   NOTE', 'payouts      3', 'ci        1200   busy']);
  expect(table(['ALIAS', 'HELD'], [])).toEqual(['ALIAS   HELD']);
});

test('a wall time that is none does not end the command', () => {
  expect(wallTime(1_735_689_600_123)).toBe('2025-01-01T00:00:00.123Z');
  expect(wallTime(Number.MAX_SAFE_INTEGER)).toBe('-');
});

test('a namespace full of locks is listed', () => {
  const rows = Array.from({ length: 200_000 }, (_, at) => [`merchant-${at}`, 'held']);
  const lines = table(['NAME', 'STATE'], rows);
  expect(lines).toHaveLength(200_001);
  expect(lines.at(-1)).toBe('merchant-199999   held');
});
