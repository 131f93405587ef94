/** Inspect, Admin and health over a real socket. */
import { Client, credentials, status } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/server/grpc/proto.ts';
import { socketTarget } from '../../src/server/grpc/socket.ts';
import { CODE_TRAILER } from '../../src/server/grpc/status.ts';
import { adminServices, Group, protocol } from '../support/admin-services.ts';
import { acquireCommand, namespaceConfig } from '../support/core.ts';
import { eventually } from '../support/dev/lock-api.ts';

const services = adminServices();

describe('which namespace is meant', () => {
  test('the only one may stay unnamed; of several one must be named; an unknown one is answered with those served', async () => {
    await services.serve(await Group.start('one'));
    expect((await services.client.getLock({ namespace: '', name: 'a' })).name).toBe('a');
    services.groups.push(await Group.start('two'));
    await expect(services.client.getLock({ namespace: '', name: 'a' })).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: 'name a namespace; served here: one, two',
    });
    await expect(services.client.status('three')).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: 'no namespace three; served here: one, two',
    });
    expect((await services.client.status('')).map(({ namespace }) => namespace)).toEqual(['one', 'two']);
    expect((await services.client.status('two'))[0]?.config).toEqual(
      namespaceConfig({ namespace: 'test', name: 'two' }),
    );
  });
});

describe('inspecting', () => {
  test('shows figures and locks as they are', async () => {
    const group = await Group.start('jobs');
    await services.serve(group);
    const [holder, waiter] = [await group.open(), await group.open()];
    const token = await group.lock(holder, 'nightly');
    await group.replica.submit(
      acquireCommand({ session: waiter, key: 'k', name: 'nightly', waitMs: 60_000 }),
    );
    const [figures] = await services.client.status('');
    expect(figures).toMatchObject({
      leading: true,
      sessions: 2,
      held: 1,
      waiting: 1,
      names: 1,
      longestQueue: 1,
    });
    expect(figures?.lastToken).toBe(token);
    expect(figures?.position).toEqual(group.replica.status().position);
    const lock = await services.client.getLock({ namespace: 'jobs', name: 'nightly' });
    expect(lock).toMatchObject({
      holders: [{ session: holder, token, permits: 1, revoking: null }],
      holderCount: 1,
      waiterCount: 1,
      quarantined: false,
    });
    expect(lock.waiters).toMatchObject([{ session: waiter, mode: 'exclusive', permits: 1 }]);
    expect(
      await services.client.listLocks({ namespace: '', prefix: 'n', after: '', limit: 0 }),
    ).toMatchObject({
      locks: [{ name: 'nightly' }],
      more: false,
    });
    expect(
      (await services.client.listLocks({ namespace: '', prefix: 'x', after: '', limit: 5 })).locks,
    ).toEqual([]);
  });

  test('refuses what cannot be a name or a limit', async () => {
    await services.serve(await Group.start('jobs'));
    const invalid = { code: status.INVALID_ARGUMENT };
    await expect(services.client.getLock({ namespace: '', name: '' })).rejects.toMatchObject(invalid);
    await expect(services.client.getLock({ namespace: '', name: 'x'.repeat(513) })).rejects.toMatchObject(
      invalid,
    );
    const list = { namespace: '', prefix: '', after: '', limit: 1_001 };
    await expect(services.client.listLocks(list)).rejects.toMatchObject(invalid);
    await expect(services.client.listLocks({ ...list, limit: 2 ** 60 })).rejects.toMatchObject(invalid);
  });
});

describe('commands of administrators', () => {
  test('a quarantined name is granted to nobody until it is put back', async () => {
    const group = await Group.start('jobs');
    await services.serve(group);
    const session = await group.open();
    await services.client.quarantine({ namespace: 'jobs', name: 'nightly', reason: 'looks odd' });
    const refused = await group.replica.submit(acquireCommand({ session, key: 'k1', name: 'nightly' }));
    expect(refused).toMatchObject({ type: 'refused', code: 'QUARANTINED' });
    expect((await services.client.getLock({ namespace: '', name: 'nightly' })).quarantined).toBe(true);
    await services.client.unquarantine({ namespace: 'jobs', name: 'nightly', by: 'alice' });
    expect(await group.lock(session, 'nightly')).toBeGreaterThan(0);
    await expect(
      services.client.unquarantine({ namespace: 'jobs', name: 'nightly', by: 'alice' }),
    ).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'the name is not quarantined',
    });
  });

  test('what goes on record must be there and fit', async () => {
    await services.serve(await Group.start('jobs'));
    const good = { namespace: '', name: 'nightly', token: 1, now: false, reason: 'stuck', by: 'alice' };
    const bad = [
      { ...good, token: 0 },
      { ...good, token: 2 ** 53 },
      { ...good, name: '' },
      { ...good, reason: '' },
      { ...good, reason: 'é'.repeat(513) },
      { ...good, by: '' },
      { ...good, by: 'x'.repeat(257) },
    ];
    for (const request of bad) {
      await expect(services.client.breakLock(request)).rejects.toMatchObject({
        code: status.INVALID_ARGUMENT,
      });
    }
    const error = await services.client.breakLock(good).catch((failed: unknown) => failed);
    expect(error).toMatchObject({ code: status.FAILED_PRECONDITION });
    const { metadata } = error as { metadata: { get(name: string): unknown[] } };
    expect(metadata.get(CODE_TRAILER)).toEqual(['NOT_HELD']);
  });

  test('configuration is the business of the manifests', async () => {
    await services.serve(await Group.start('jobs'));
    const answer = await services.call('leasehold.v1.Admin', 'Configure', { namespace: 'jobs', version: 9 });
    expect(answer).toMatchObject({ code: status.FAILED_PRECONDITION });
    expect(String((answer as { details: string }).details)).toContain('manifest');
  });
});

describe('health', () => {
  test('is asked as gRPC probes ask it', async () => {
    await services.serve(await Group.start('jobs'));
    expect(await services.call('grpc.health.v1.Health', 'Check', {})).toEqual({ status: 'SERVING' });
    expect(await services.call('grpc.health.v1.Health', 'Check', { service: 'leasehold.v1.Admin' })).toEqual({
      status: 'SERVING',
    });
    expect(await services.call('grpc.health.v1.Health', 'Check', { service: 'nope' })).toMatchObject({
      code: status.NOT_FOUND,
    });
  });

  test('tells those who watch when the server stops', async () => {
    await services.serve(await Group.start('jobs'));
    const method = protocol.service('grpc.health.v1.Health').Watch;
    if (method === undefined) throw new Error('no Watch');
    const raw = new Client(socketTarget(services.socketPath), credentials.createInsecure());
    const deserialize = method.responseDeserialize as (bytes: Buffer) => Message;
    const seen: unknown[] = [];
    const watching = raw.makeServerStreamRequest(method.path, method.requestSerialize, deserialize, {
      service: '',
    });
    watching.on('data', (answer: Message) => seen.push(answer.status));
    const ended = new Promise((resolve) => watching.once('end', resolve));
    await eventually(() => seen.length === 1);
    await services.server.close();
    await ended;
    expect(seen).toEqual(['SERVING', 'NOT_SERVING']);
    raw.close();
  });
});
