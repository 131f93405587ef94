/** The etcd fence against a real etcd. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type EtcdOperation,
  fencedRevision,
  fencedTransaction,
  fencedWrite,
  StaleTokenError,
} from '../../src/client/fencing/index.ts';
import { ETCD_START_MS_MAX, TestEtcd } from '../support/etcd.ts';

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await TestEtcd.start();
}, ETCD_START_MS_MAX);
afterAll(() => etcd?.stop());

let resources = 0;
const nextResource = () => `payouts/r${++resources}`;

function put(key: string, value: string): EtcdOperation {
  return { put: { key, value } };
}

function write(resource: string, token: number, value: string) {
  return fencedWrite(
    { endpoint: etcd.endpoint },
    { resource, token, operations: [put(`data/${resource}`, value)] },
  );
}

describe('a fenced write to etcd', () => {
  it('makes a missing fence, passes an equal and a greater token, refuses a smaller one and writes nothing', async () => {
    const resource = nextResource();
    expect(Number(await write(resource, 9, 'first'))).toBeGreaterThan(0);
    await write(resource, 9, 'again');
    await write(resource, 10, 'newer');
    const refused = await write(resource, 9, 'late').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StaleTokenError);
    expect(refused).toMatchObject({ code: 'STALE_TOKEN', token: 9, current: 10, resource });
    expect(await etcd.get(`data/${resource}`)).toBe('newer');
    expect(await etcd.get(`leasehold/fence/${resource}`)).toBe('0000000000000010');
  });

  it('compares as numbers, from 1 to the last token', async () => {
    const resource = nextResource();
    for (const token of [1, 9, 10, 99, 1_871_905_113_735_168, 2 ** 53 - 1])
      await write(resource, token, `${token}`);
    await expect(write(resource, 2 ** 53 - 2, 'late')).rejects.toMatchObject({ current: 2 ** 53 - 1 });
    await write(resource, 2 ** 53 - 1, 'last');
    expect(await etcd.get(`data/${resource}`)).toBe('last');
  });

  it('puts and deletes several keys together, or none', async () => {
    const resource = nextResource();
    const gateway = { endpoint: etcd.endpoint };
    await fencedWrite(gateway, { resource, token: 5, operations: [put('a', '1'), put('b', '2')] });
    await fencedWrite(gateway, { resource, token: 6, operations: [{ delete: { key: 'a' } }, put('b', '')] });
    const late = fencedWrite(gateway, {
      resource,
      token: 5,
      operations: [put('a', 'x'), { delete: { key: 'b' } }],
    });
    await expect(late).rejects.toBeInstanceOf(StaleTokenError);
    expect([await etcd.get('a'), await etcd.get('b')]).toEqual([null, '']);
  });

  it('of writers at once the greatest token is last, whatever the order of arrival', async () => {
    const resource = nextResource();
    const tokens = Array.from({ length: 40 }, (_, index) => ((index * 17) % 40) + 1);
    const outcomes = await Promise.allSettled(tokens.map((token) => write(resource, token, `${token}`)));
    expect(await etcd.get(`data/${resource}`)).toBe('40');
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(StaleTokenError);
    }
    expect(outcomes[tokens.indexOf(40)]?.status).toBe('fulfilled');
  });

  it('sent again after an answer that was lost, it does no harm', async () => {
    const resource = nextResource();
    await write(resource, 5, 'mine');
    await write(resource, 5, 'mine');
    await write(resource, 6, 'theirs');
    await expect(write(resource, 5, 'mine')).rejects.toBeInstanceOf(StaleTokenError);
    expect(await etcd.get(`data/${resource}`)).toBe('theirs');
  });

  it('a holder that was paused between building and sending its write is refused', async () => {
    const resource = nextResource();
    const old = { resource, token: 5, operations: [put(`data/${resource}`, 'late')] };
    const built = JSON.stringify(fencedTransaction(old));
    await write(resource, 6, 'newer');
    const response = await fetch(`${etcd.endpoint}/v3/kv/txn`, { method: 'POST', body: built });
    const answer: unknown = await response.json();
    expect(() => fencedRevision(old, answer)).toThrow(StaleTokenError);
    expect(await etcd.get(`data/${resource}`)).toBe('newer');
  });

  it('reports a refusal once, and throws it even when the report fails', async () => {
    const resource = nextResource();
    await write(resource, 6, 'newer');
    const told: unknown[] = [];
    const failure = new Error('no sidecar');
    const gateway = {
      endpoint: etcd.endpoint,
      report: async (stale: unknown) => {
        told.push(stale);
        throw failure;
      },
    };
    const refused = await fencedWrite(gateway, { resource, token: 5, operations: [] }).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ code: 'STALE_TOKEN', cause: failure });
    expect(told).toEqual([refused]);
  });

  it('a fence that somebody else wrote, or an operation etcd refuses, is an error and not a refusal', async () => {
    const gateway = { endpoint: etcd.endpoint };
    const fenceKey = 'not-ours';
    await fencedWrite(gateway, { resource: 'x', token: 1, operations: [put(fenceKey, 'zzz')] });
    const onto = fencedWrite(gateway, { resource: 'x', token: 5, operations: [], fenceKey });
    await expect(onto).rejects.toThrow('not one of ours');
    const twice = fencedWrite(gateway, {
      resource: 'y',
      token: 5,
      operations: [put('k', '1'), put('k', '2')],
    });
    await expect(twice).rejects.toThrow('duplicate key');
  });
});
