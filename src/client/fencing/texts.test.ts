/** What needs no server: quoting, generated texts, the transaction for etcd, the report. The rest: test/fencing. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { LeaseholdError } from '../../api/errors.ts';
import { fencedRevision, fencedTransaction, fencedWrite } from './etcd.ts';
import { raiseFenceSql } from './postgresql.ts';
import { dollarQuote, quoteIdentifier, quoteLiteral, quoteTable } from './sql-text.ts';
import { staleReporter } from './stale-reporter.ts';
import { readToken, StaleTokenError } from './stale-token.ts';
import { rowFenceSql, staleTokenFrom, type TableFence, tableFenceSql } from './triggers.ts';

describe('StaleTokenError', () => {
  it('is the STALE_TOKEN of the error table, and says all three', () => {
    const error = new StaleTokenError({ token: 5, current: 6, resource: 'r' });
    expect(error).toBeInstanceOf(LeaseholdError);
    expect(error).toMatchObject({ code: 'STALE_TOKEN', status: 409, token: 5, current: 6, resource: 'r' });
  });

  it('is made from a refusal by a trigger, and from nothing else', () => {
    const detail = '{"token": 5, "current": 6, "resource": "r"}';
    expect(staleTokenFrom({ code: 'LH001', detail })).toMatchObject({ token: 5, current: 6, resource: 'r' });
    for (const error of [null, undefined, 'LH001', {}, { code: 'LH002', detail }, { code: 'LH001' }])
      expect(staleTokenFrom(error)).toBeNull();
  });
});

describe('quoting for PostgreSQL', () => {
  it('doubles quotes, and refuses what PostgreSQL would cut off or not take', () => {
    expect(quoteIdentifier('a"b.c')).toBe('"a""b.c"');
    expect(quoteTable(['s', 't'])).toBe('"s"."t"');
    expect(quoteLiteral("o'brien")).toBe("'o''brien'");
    expect(quoteLiteral("\\'")).toBe("E'\\\\'''");
    for (const name of ['', 'a\0', 'x'.repeat(64), 'ü'.repeat(32), '\ud800'])
      expect(() => quoteIdentifier(name)).toThrow(RangeError);
    expect(() => quoteLiteral('a\0')).toThrow(RangeError);
    expect(() => rowFenceSql({ table: 'x'.repeat(60), column: 'fence' })).toThrow('63 bytes');
    const leftOut = { table: 't', resource: 'r' } as unknown as TableFence;
    expect(() => tableFenceSql(leftOut)).toThrow('the name of a table is missing');
  });

  it('leaves no way out of a name or a text', () => {
    const piece = fc.constantFrom(
      '"',
      "'",
      '\\',
      '$',
      '$leasehold$',
      '$leasehold1$',
      ';',
      '--',
      '\n',
      'x',
      'E',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join('')),
        (text) => {
          expect(/^"(?:[^"]|"")*"$/.test(quoteIdentifier(text))).toBe(true);
          expect(/^(?:'(?:[^'\\]|'')*'|E'(?:[^'\\]|''|\\\\)*')$/.test(quoteLiteral(text))).toBe(true);
          const quoted = dollarQuote(text);
          const tag = /^\$\w+\$/.exec(quoted)?.[0] ?? '';
          expect(quoted.indexOf(tag, tag.length)).toBe(quoted.length - tag.length);
        },
      ),
    );
  });

  it('names the table in the statement to do it by hand', () => {
    expect(raiseFenceSql(['s', 'f'])).toContain('INSERT INTO "s"."f" AS fence');
  });
});

describe('the transaction for etcd', () => {
  it('compares with a fixed number of digits and has a branch for the first write', () => {
    const bytes = (text: string) => Buffer.from(text).toString('base64');
    const key = bytes('leasehold/fence/r');
    const value = new Uint8Array([0, 255]);
    const transaction = fencedTransaction({
      resource: 'r',
      token: 9,
      operations: [{ put: { key: 'k', value } }],
    });
    const success = [
      { request_put: { key, value: bytes('0000000000000009') } },
      { request_put: { key: bytes('k'), value: 'AP8=' } },
    ];
    expect(transaction).toEqual({
      compare: [{ key, target: 'VALUE', result: 'LESS', value: bytes('0000000000000010') }],
      success,
      failure: [
        {
          request_txn: {
            compare: [{ key, target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
            success,
            failure: [{ request_range: { key } }],
          },
        },
      ],
    });
  });

  it('calls a write refused only where it was not done for certain', async () => {
    const write = { resource: 'r', token: 5, operations: [] };
    const told = (status: number) => {
      const fetch = async () => new Response('etcdserver: request timed out', { status });
      return fencedWrite({ endpoint: 'http://etcd', fetch }, write);
    };
    await expect(told(503)).rejects.toThrow('does not say whether it wrote');
    await expect(told(400)).rejects.toThrow('etcd refused the write (400)');
  });

  it('takes only tokens and names for what they are, and only answers of etcd', () => {
    expect(() => fencedTransaction({ resource: 'r', token: 2 ** 53, operations: [] })).toThrow('2^53');
    expect(() => fencedTransaction({ resource: '', token: 1, operations: [] })).toThrow('name');
    expect(() => fencedRevision({ resource: 'r', token: 1, operations: [] }, { code: 3 })).toThrow(
      'not an answer',
    );
    for (const stored of ['', 'x', '1.5', '9007199254740992', -1, null, undefined])
      expect(() => readToken(stored, 'it')).toThrow('it holds no fencing token');
  });
});

describe('staleReporter', () => {
  const closers: (() => void)[] = [];
  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  async function lockApi(status: number, delayMs = 0) {
    const calls: unknown[] = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      calls.push([request.method, request.url, JSON.parse(body)]);
      setTimeout(() => response.writeHead(status).end('{"recorded":true}'), delayMs);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, calls };
  }

  const stale = { token: 5, current: 6, resource: 'payouts db' };

  it('posts what the API wants', async () => {
    const { url, calls } = await lockApi(200);
    await staleReporter({ url, lock: 'payouts/a b' })(stale);
    await staleReporter({ url, lock: (resource) => `payouts/${resource}` })(stale);
    const body = { token: 5, resource: 'payouts db' };
    expect(calls).toEqual([
      ['POST', '/v1/locks/payouts%2Fa%20b/stale-reports', body],
      ['POST', '/v1/locks/payouts%2Fpayouts%20db/stale-reports', body],
    ]);
  });

  it('rejects when the report was refused or not answered in time', async () => {
    await expect(staleReporter({ url: (await lockApi(503)).url, lock: 'l' })(stale)).rejects.toThrow('503');
    const slow = await lockApi(200, 2_000);
    await expect(staleReporter({ url: slow.url, lock: 'l', timeoutMs: 50 })(stale)).rejects.toThrow(
      'timeout',
    );
  });
});
