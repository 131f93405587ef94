/** A new lineage that begins while a replica looks whether its log is still the one it opened (rule S10). */
import { expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { MemoryStore } from '../../log/memory-store.ts';
import { HaltedError, ReplacedError } from '../../log/port.ts';
import { LogStanding } from './log-standing.ts';

const SEEN = { index: 3, hash: 'seen' };

function bench(entryHash: (log: MemoryLog) => Promise<string>) {
  const log = new MemoryLog(new MemoryStore('l'));
  const { standing } = log;
  log.standing = async () => ({ ...(await standing.call(log)), head: { index: 9, hash: 'newest' } });
  log.entryHash = () => entryHash(log);
  const looking = new LogStanding(new VirtualRuntime(), log, 'a');
  looking.remember(SEEN);
  return { log, looking };
}

test('another entry in its place proves a roll-back', async () => {
  const { log, looking } = bench(async () => 'another');
  await expect(looking.check('entry')).rejects.toThrow(HaltedError);
  expect((await log.standing()).halted).toMatchObject({ seenBy: 'replica', seen: SEEN, found: 'another' });
});

test('an entry of a lineage that has just begun proves nothing', async () => {
  const { log, looking } = bench(async (log) => {
    await log.beginLineage({ tokenFloor: 0, quietMs: 0 });
    return 'of the next lineage';
  });
  await expect(looking.check('entry')).rejects.toThrow(ReplacedError);
  expect((await log.standing()).halted).toBeNull();
});
