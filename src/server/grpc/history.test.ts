/** Readers that take nothing: they may stay, until somebody else wants their place. */
import { EventEmitter } from 'node:events';
import { type ServerWritableStream, type StatusObject, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Group } from '../../../test/support/admin-services.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { HistoryService } from './history.ts';
import type { ReadHistoryRequest } from './messages.ts';
import type { Message } from './proto.ts';

const REPLAYS = 4;
const FOLLOWERS = 64;

let group: Group;
let service: HistoryService;
let time: VirtualRuntime;

beforeEach(async () => {
  group = await Group.start('jobs');
  time = new VirtualRuntime();
  service = new HistoryService(() => [group], time.timers);
});

afterEach(async () => {
  service.close();
  await group.replica.stop();
});

/** `takes` all that it is sent, or nothing of it. */
class Reader extends EventEmitter {
  readonly request: ReadHistoryRequest;
  takes: boolean;
  sent = 0;
  ended: 'whole' | Partial<StatusObject> | null = null;

  constructor(takes: boolean, follow: boolean) {
    super();
    this.takes = takes;
    this.request = { namespace: '', from: 1, follow };
    this.on('error', (error: Partial<StatusObject>) => {
      this.ended = error;
    });
    const read = service.implementation.Read as (
      call: ServerWritableStream<ReadHistoryRequest, Message>,
    ) => void;
    read(this as unknown as ServerWritableStream<ReadHistoryRequest, Message>);
  }

  write(): boolean {
    this.sent++;
    return this.takes;
  }

  end(): void {
    this.ended = 'whole';
  }
}

const stuckReaders = (): Reader[] => Array.from({ length: REPLAYS }, () => new Reader(false, false));

test('one that reads gets the place of one that has taken nothing for ten seconds, not sooner', async () => {
  const stuck = stuckReaders();
  await expect.poll(() => stuck.map(({ sent }) => sent)).toEqual(stuck.map(() => 1));
  const early = new Reader(true, false);
  await expect.poll(() => early.ended).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  await time.pass(10_000);
  const honest = new Reader(true, false);
  await expect.poll(() => honest.ended).toBe('whole');
  expect(honest.sent).toBe(group.head);
  const cutOff = stuck.filter(({ ended }) => ended !== null);
  expect(cutOff.map(({ ended }) => ended)).toMatchObject([
    { code: status.RESOURCE_EXHAUSTED, details: expect.stringContaining('nothing was taken for 10 s') },
  ]);
});

test('one that is slow keeps its place, whoever wants it', async () => {
  const slow = stuckReaders();
  await expect.poll(() => slow.map(({ sent }) => sent)).toEqual(slow.map(() => 1));
  await time.pass(9_000);
  for (const reader of slow) reader.emit('drain');
  await expect.poll(() => slow.map(({ sent }) => sent)).toEqual(slow.map(() => 2));
  await time.pass(9_000);
  const other = new Reader(true, false);
  await expect.poll(() => other.ended).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  expect(slow.every(({ ended }) => ended === null)).toBe(true);
});

test('followers that take nothing any more hold no place either', async () => {
  const session = await group.open();
  const stuck: Reader[] = [];
  for (let at = 0; at < FOLLOWERS; at++) {
    const reader = new Reader(true, true);
    stuck.push(reader);
    await expect.poll(() => reader.sent, { interval: 1 }).toBe(group.head);
    reader.takes = false;
  }
  await group.lock(session, 'one');
  await expect.poll(() => stuck.every(({ sent }) => sent === group.head)).toBe(true);
  const early = new Reader(true, true);
  await expect.poll(() => early.ended).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  await time.pass(10_000);
  const honest = new Reader(true, true);
  await expect.poll(() => honest.sent).toBe(group.head);
  expect(honest.ended).toBe(null);
  expect(stuck.filter(({ ended }) => ended !== null)).toHaveLength(1);
});
