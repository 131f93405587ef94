/** A leader's snapshot over a log that fails in the middle of it. */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { createState } from '../../core/index.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import type { Leadership, LockLog } from '../../log/port.ts';
import { Snapshots } from './snapshots.ts';

test('when nothing answers while it trims, the snapshot has failed, and no error is left to end the process', async () => {
  const runtime = new VirtualRuntime();
  const lost = async (ms: number): Promise<never> => {
    await runtime.pass(ms);
    throw new LogUnavailableError('the answer was lost');
  };
  let isTrimming = false;
  const log: Partial<LockLog> = {
    openSnapshot: async () => 'snapshot-1',
    claimSnapshot: async () => true,
    writeChunk: async () => undefined,
    auditCursor: async () => null,
    commitSnapshot: async () => {
      isTrimming = true;
    },
    retainedBytes: async () => (isTrimming ? await lost(1) : 0),
    space: async () => await lost(5),
  };
  let standbysAsked = 0;
  const standbys = (): readonly number[] => (standbysAsked++ === 0 ? [] : [3, 4]);
  const leadership = {} as Leadership;
  const options = { runtime, log: log as LockLog, leadership, logBytes: 0, lastBytes: 0, standbys };
  const state = createState('l1');
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', onUnhandled);
  try {
    const at = { index: 0, hash: '' };
    await expect(new Snapshots(options).write(state, at)).rejects.toThrow('the answer was lost');
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
  expect(unhandled).toEqual([]);
});
