/**
 * Marks as weapons (rule S10): what clients show to a healthy group, over the wire, must never halt it, through whichever front end, under
 * whichever leader; and however many lies there are, the one true mark still halts a log that was set back.
 */
import { expect, test } from 'vitest';
import { type VirtualGroup as Group, VirtualGroup } from '../../../test/support/virtual/virtual-group.ts';
import type { Mark, ServerFrame } from '../../api/wire.ts';
import { hashOf } from '../../log/rules.ts';
import { frameCodecs } from '../grpc/frame-codec.ts';
import { loadProtocol } from '../grpc/proto.ts';
import { Seals } from './seals.ts';

const { client: codec } = frameCodecs(loadProtocol());
const IDENTITY = { account: 'evil/pod', podUid: 'p' };
const OPEN = { type: 'open', client: 'c', ttlMs: 15_000, maxHoldMs: 0, secretHash: 'ab'.repeat(32) } as const;

/** A stream whose first frame shows `mark`, as bytes. */
function show(group: Group, at: number, mark?: Mark) {
  const frames: ServerFrame[] = [];
  const frontEnd = group.servers[at % group.servers.length]?.member.frontEnd;
  const stream = frontEnd?.connect(IDENTITY, {
    onFrame: (frame) => void frames.push(frame),
    onClose: () => undefined,
  });
  const first = { format: 1, requests: [{ id: 1, body: OPEN }], ...(mark === undefined ? {} : { mark }) };
  stream?.send(codec.decode(codec.encode(first)));
  return { stream, frames };
}

/** What a leader has given out, from the oldest on. */
async function genuine(group: Group): Promise<readonly Mark[]> {
  const { stream, frames } = show(group, 0);
  for (let number = 1; number <= 8; number++) {
    await group.runtime.pass(1_100);
    stream?.send({ format: 1, requests: [], keepalive: { number, sessions: [{ session: 1, attach: 1 }] } });
  }
  await group.runtime.pass(1_000);
  const marks = frames.flatMap(({ mark }) => mark ?? []);
  expect(marks.length).toBeGreaterThan(4);
  return marks;
}

const another = new Seals(hashOf(Buffer.from('another group')));

function lies(marks: readonly Mark[]): readonly Mark[] {
  const [first, last] = [marks[0] as Mark, marks.at(-1) as Mark];
  const { seal: _seal, ...place } = last;
  return [
    { ...last, index: 2 ** 53 - 1 },
    { ...last, index: last.index + 1 },
    { ...last, index: 0 },
    { ...last, epoch: 2 ** 53 - 1 },
    { ...last, hash: first.hash },
    { ...first, hash: last.hash },
    { ...first, index: last.index },
    { ...last, seal: first.seal },
    { ...last, seal: last.seal.toUpperCase() },
    { ...last, seal: last.seal.slice(0, 63) },
    { ...last, seal: `${last.seal}00` },
    { ...last, seal: '' },
    { ...last, hash: '' },
    { ...last, lineage: '' },
    { ...last, lineage: 'm' },
    { ...last, lineage: `${last.lineage}\u0000` },
    { ...last, lineage: last.lineage.toUpperCase() },
    // The seal is over JSON, in which no field can become part of another.
    { ...last, lineage: `${last.lineage}",${last.epoch},1,"x` },
    another.seal({ ...place, index: last.index + 1_000 }),
    another.seal({ ...place, hash: hashOf(Buffer.from('other')) }),
    { lineage: '', epoch: 0, index: 0, hash: '', seal: '' },
  ];
}

test('a healthy group goes on, whatever forged, foreign, replayed or empty marks are shown to each of its replicas and leaders', async () => {
  const group = new VirtualGroup();
  await group.led();
  const marks = await genuine(group);
  const shown = [...lies(marks), ...marks, ...marks.toReversed()];
  // They are shown again to each leader that comes.
  const streams = shown.map((mark, at) => show(group, at, mark));
  await group.runtime.pass(3_000);
  const before = await group.led();
  await group.runtime.until(before.member.stop(), 10_000);
  await group.led([before]);
  await group.runtime.pass(5_000);
  expect(group.store.standing().halted).toBeNull();
  expect(group.servers.flatMap(({ halted }) => halted)).toEqual([]);
  // And everybody is served: it was a client's word, and no harm to the client either.
  const answered = streams.filter(({ frames }) => frames.some(({ answers }) => answers.length > 0));
  expect(answered.length).toBe(streams.length);
});

test('among any number of lies the one true mark halts a group that was set back', async () => {
  const group = new VirtualGroup();
  await group.led();
  const copy = group.store.copy();
  const marks = await genuine(group);
  await group.runtime.until(Promise.all(group.servers.map(({ member }) => member.stop())), 10_000);
  copy.depose();
  group.store.restore(copy);
  for (const name of ['a', 'b', 'c']) await group.restart(name);
  await group.led();
  for (let round = 0; round < 20; round++) for (const lie of lies(marks)) show(group, round, lie);
  await group.runtime.pass(3_000);
  expect(group.store.standing().halted).toBeNull();
  show(group, 1, marks.at(-1));
  for (let round = 0; round < 20; round++) for (const lie of lies(marks)) show(group, round, lie);
  await group.runtime.pass(3_000);
  expect(group.store.standing().halted).toMatchObject({
    seenBy: 'client',
    seen: { index: marks.at(-1)?.index },
  });
});
