/** Frames to the leader, gathered: nothing is lost, nothing overtakes, and no frame grows without bound. */
import { describe, expect, it } from 'vitest';
import type { RelayFrame, RelayGroup } from '../../api/wire.ts';
import { GATHERED_MAX, GatheredFrames } from './gathered-frames.ts';

function scene() {
  const written: RelayFrame[] = [];
  const soon: (() => void)[] = [];
  const timers = {
    after: () => ({ cancel: () => undefined }),
    soon: (action: () => void) => void soon.push(action),
  };
  const gathered = new GatheredFrames(timers, (frame) => written.push(frame));
  const endTurn = (): void => {
    for (const action of soon.splice(0)) action();
  };
  return { gathered, written, endTurn };
}

function group(client: number, requests = 1): RelayGroup {
  const body = { type: 'getLock', name: 'n' } as const;
  return { client, requests: Array.from({ length: requests }, (_, id) => ({ id, body })) };
}

const frameOf = (...groups: RelayGroup[]): RelayFrame => ({ format: 1, groups, closed: [] });
const clientsOf = ({ groups }: RelayFrame): readonly number[] => groups.map(({ client }) => client);

describe('GatheredFrames', () => {
  it('makes one frame of what comes within one turn, in order', () => {
    const { gathered, written, endTurn } = scene();
    for (const client of [3, 1, 3, 2]) gathered.send(frameOf(group(client)));
    expect(written).toEqual([]);
    endTurn();
    expect(written.map(clientsOf)).toEqual([[3, 1, 3, 2]]);
    gathered.send(frameOf(group(4)));
    endTurn();
    expect(written.map(clientsOf)).toEqual([[3, 1, 3, 2], [4]]);
  });

  it.each<[string, Partial<RelayFrame>]>([
    ['the end of a client', { closed: [1] }],
    ['the end of the bulk re-attachment', { allAttached: true }],
    ['a bulk re-attachment', { reattach: { sessions: [], seen: { lineage: 'l', epoch: 1, index: 1 } } }],
    ['how far the standby is', { applied: 7 }],
    ['what the replica can apply', { behaviour: 2 }],
    ['a mark', { groups: [{ ...group(9), mark: { lineage: 'l', epoch: 1, index: 1, hash: '', seal: '' } }] }],
  ])('sends %s by itself, at once, and after what came before it', (_what, parts) => {
    const { gathered, written, endTurn } = scene();
    const special = { ...frameOf(), ...parts };
    gathered.send(frameOf(group(1)));
    gathered.send(special);
    gathered.send(frameOf(group(2)));
    expect(written).toEqual([frameOf(group(1)), special]);
    endTurn();
    expect(written).toEqual([frameOf(group(1)), special, frameOf(group(2))]);
  });

  it('bounds a frame by what it carries, and leaves a larger one as it is', () => {
    const { gathered, written, endTurn } = scene();
    const half = GATHERED_MAX / 2;
    for (const client of [1, 2, 3]) gathered.send(frameOf(group(client, half - 1)));
    const keepalive = { number: 1, sessions: Array(GATHERED_MAX).fill({ session: 1, attach: 1 }) };
    gathered.send(frameOf({ client: 4, requests: [], keepalive }));
    gathered.send(frameOf(group(5)));
    endTurn();
    expect(written.map(clientsOf)).toEqual([[1, 2], [3], [4], [5]]);
  });

  it('says nothing more once its stream is gone', () => {
    const { gathered, written, endTurn } = scene();
    gathered.send(frameOf(group(1)));
    gathered.drop();
    endTurn();
    expect(written).toEqual([]);
  });
});
