/** Case G16: members of the storage that hold different data. */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { corruptMembers, differingMembers } from '../../log/etcd/integrity.ts';
import { Integrity } from './integrity.ts';

const hash = (number: number, hash: string, compactRevision = '5') => ({ number, hash, compactRevision });

test.each([
  ['all agree', [hash(0, 'x'), hash(1, 'x'), hash(2, 'x')], []],
  ['one differs', [hash(0, 'x'), hash(1, 'y'), hash(2, 'x')], [1]],
  ['two agree, the third does not answer', [hash(0, 'x'), hash(2, 'x')], []],
  ['two differ, the third does not answer: nobody is right', [hash(0, 'x'), hash(2, 'y')], [0, 2]],
  ['all differ', [hash(0, 'x'), hash(1, 'y'), hash(2, 'z')], [0, 1, 2]],
  ['one alone', [hash(0, 'x')], null],
  ['one has compacted meanwhile', [hash(0, 'x'), hash(1, 'y', '6'), hash(2, 'x')], null],
])('%s', (_what, hashes, differing) => {
  expect(differingMembers(hashes, 3)).toEqual(differing);
});

test('an alarm names members by their endpoints, where somebody answers there', () => {
  const member = (id: string, endpoint: string) => ({
    ...{ number: 0, id, endpoint, version: '3.6.16', revision: 1, isLeader: false },
    ...{ fileBytes: 1, usedBytes: 1, isFull: false, corrupt: ['11', '12'] },
  });
  expect(corruptMembers([member('10', 'http://a'), member('11', 'http://b')])).toEqual([
    'http://b',
    'member c',
  ]);
});

/** Of three members, with what comparisons find, one after the other. */
function looking(...findings: (readonly string[] | null)[]) {
  let compared = 0;
  const integrity = new Integrity({
    runtime: new VirtualRuntime(),
    log: { compareMembers: async () => findings.at(compared++) ?? null },
  });
  const look = async (isLeading: boolean, corrupt: readonly string[] = [], answering = 3): Promise<void> => {
    integrity.look({ answering, corrupt }, isLeading);
    await new Promise(setImmediate);
  };
  return { integrity, look, compared: () => compared };
}

test('members are compared once a leadership, until they could be, and when one comes back', async () => {
  const { integrity, look, compared } = looking(null, [], [], []);
  await look(false);
  expect(compared()).toBe(0);
  await look(true);
  await look(true);
  await look(true);
  expect(compared()).toBe(2);
  await look(true, [], 2);
  expect(compared()).toBe(2);
  await look(true);
  expect(compared()).toBe(3);
  await look(false);
  await look(true);
  expect(compared()).toBe(4);
  expect(integrity.problem).toBeNull();
});

test('one that differs is named until it does not any more, or is gone', async () => {
  const { integrity, look, compared } = looking(['http://b'], ['http://b'], [], []);
  await look(true);
  expect(integrity.problem).toContain('http://b');
  expect(integrity.members).toEqual(['http://b']);
  await look(false);
  expect(integrity.problem).toContain('http://b');
  await look(false);
  expect(integrity.problem).toBeNull();
  expect(compared()).toBe(3);
  // It may be asked again only when it has been seen to agree.
  await look(false, [], 4);
  expect(compared()).toBe(4);
});

test('an alarm is told by every replica, and the one that leads says who differs', async () => {
  const { integrity, look, compared } = looking([], ['http://b']);
  await look(true);
  await look(true, ['http://b']);
  expect(compared()).toBe(2);
  expect(integrity.problem).toContain('CORRUPT');
  expect(integrity.members).toEqual(['http://b']);
  const follower = looking();
  await follower.look(false, ['http://b']);
  expect(follower.compared()).toBe(0);
  expect(follower.integrity.problem).toContain('http://b');
  await follower.look(false, []);
  expect(follower.integrity.problem).toBeNull();
});
