import { describe, expect, it } from 'vitest';
import type { ClientFrame, ClientHandler, ServerFrame } from '../../../src/api/wire.ts';
import { Machine } from './machine.ts';
import { Link, UNWATCHED } from './network.ts';
import { VirtualProcess } from './process.ts';
import { World } from './world.ts';

const ROUNDS = 50;

/** A server that sends each frame's number back, over a link whose delays differ widely. */
function setUp(seed = 1) {
  const world = new World(seed);
  const machine = new Machine(world, { rate: 1, monotonicAtStartMs: 0, wallAtStartMs: 0 });
  const process = (name: string): VirtualProcess =>
    new VirtualProcess(world, { name, machine, hasJitter: true, onError: () => undefined });
  const [client, server] = [process('client'), process('server')];
  const [clientLife, serverLife] = [client.start(), server.start()];
  const seen = { atServer: [] as number[], atClient: [] as number[], closedAtServer: 0, closedAtClient: 0 };
  const connect = (_identity: unknown, handler: ClientHandler) => ({
    send: ({ keepalive }: ClientFrame) => {
      const number = keepalive?.number ?? 0;
      seen.atServer.push(number);
      handler.onFrame(serverFrame(number));
    },
    close: () => void seen.closedAtServer++,
  });
  const link = new Link(world, {
    name: 'link',
    watch: UNWATCHED,
    listener: () => (server.life === null ? null : { life: serverLife, frontEnd: { connect } }),
    delayMs: { from: 0, to: 100 },
  });
  const open = () =>
    link.connect(clientLife, {
      onFrame: ({ keepalive }) => seen.atClient.push(keepalive?.number ?? 0),
      onClose: () => void seen.closedAtClient++,
    });
  return { world, link, open, seen, server, serverLife };
}

function clientFrame(number: number): ClientFrame {
  return { format: 1, requests: [], keepalive: { number, sessions: [] } };
}

function serverFrame(number: number): ServerFrame {
  const position = { lineage: 'l', epoch: 1, index: number };
  return { position, leading: true, answers: [], notices: [], keepalive: { number, sessions: [] } };
}

const NUMBERS = Array.from({ length: ROUNDS }, (_, i) => i + 1);

describe('a virtual stream', () => {
  it.each([1, 2, 3, 4, 5])('keeps the order of its frames, through stalls too (seed %i)', async (seed) => {
    const { world, link, open, seen } = setUp(seed);
    const stream = open();
    for (const number of NUMBERS) world.afterMs(number * 3, () => stream.send(clientFrame(number)));
    world.afterMs(40, () => (seed % 2 === 0 ? link.stallConnected('toServer') : link.stall('toServer')));
    world.afterMs(90, () => link.unstall('toServer'));
    world.afterMs(95, () => link.stall('toClient'));
    world.afterMs(130, () => link.unstall('toClient'));
    await world.run();
    expect(seen.atServer).toEqual(NUMBERS);
    expect(seen.atClient).toEqual(NUMBERS);
  });

  it('that is cut carries nothing any more, and both sides notice', async () => {
    const { world, link, open, seen } = setUp();
    const stream = open();
    world.afterMs(500, () => stream.send(clientFrame(1)));
    world.afterMs(1_000, () => link.cut({ silently: true }));
    world.afterMs(1_001, () => stream.send(clientFrame(2)));
    await world.run();
    expect(seen.atServer).toEqual([1]);
    expect([seen.closedAtServer, seen.closedAtClient]).toEqual([1, 1]);
  });

  it('says nothing to a client that has closed it', async () => {
    const { world, open, seen } = setUp();
    const stream = open();
    world.afterMs(500, () => {
      stream.send(clientFrame(1));
      stream.close();
    });
    await world.run();
    expect(seen.atServer).toEqual([1]);
    expect([seen.atClient, seen.closedAtClient, seen.closedAtServer]).toEqual([[], 0, 1]);
  });

  it('is refused while nobody listens, and while the link is cut', async () => {
    const { world, link, open, seen, server } = setUp();
    link.cut({ silently: false });
    open();
    world.afterMs(30_000, () => {
      link.mend();
      server.kill();
      open();
    });
    await world.run();
    expect(seen.closedAtClient).toBe(2);
  });

  it('waits at a stopped server, and is served in order when it goes on', async () => {
    const { world, open, seen, server } = setUp();
    const by = {};
    server.pause(by);
    const stream = open();
    for (const number of NUMBERS) stream.send(clientFrame(number));
    world.afterMs(10_000, () => {
      expect(seen.atServer).toEqual([]);
      server.resume(by, { timersFirst: true });
    });
    await world.run();
    expect(seen.atServer).toEqual(NUMBERS);
  });
});
