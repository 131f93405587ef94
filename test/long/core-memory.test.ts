/** Design section 3: a million held locks fit in 1.5 GiB. Prints what one costs, and how fast `apply` alone is. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { decodeEntry, encodeEntry } from '../../src/core/index.ts';
import { TestGroup } from '../support/core.ts';
import { checkInvariants } from '../support/core-invariants.ts';

const LOCKS = 1_000_000;
const SESSIONS = 20_000;
const BATCH = 1_000;
const BYTES_MAX = 1.5 * 1024 ** 3;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

it('a million held locks fit in 1.5 GiB', () => {
  const group = new TestGroup({ checked: false });
  const sessions = Array.from({ length: SESSIONS }, () => group.open());
  const before = heapBytes();
  let appliedMs = 0;
  for (let first = 0; first < LOCKS; first += BATCH) {
    const commands = Array.from({ length: BATCH }, (_, i) => {
      const place = first + i;
      const session = sessions[place % SESSIONS] as number;
      return group.acquireCommand(session, `merchants/merchant-${place}`, {
        key: `request-${place}`,
        owner: 'payout-worker-7',
        acks: place < SESSIONS ? [] : [`request-${place - SESSIONS}`],
      });
    });
    // As a standby or a restarted leader has them: every text of its own, read back from bytes.
    const { bytes } = encodeEntry({ ...group.draft(commands, 1), previous: '', eventHash: '', wallMs: 0 });
    const decoded = decodeEntry(bytes).commands;
    const started = performance.now();
    group.run(decoded, 1);
    appliedMs += performance.now() - started;
  }
  const bytes = heapBytes() - before;
  console.log(
    `${Math.round(bytes / LOCKS)} bytes of heap for each held lock, ${Math.round(bytes / 1024 ** 2)} MiB in all; ` +
      `${Math.round(LOCKS / appliedMs)},000 acquires/s in apply, RSS ${Math.round(process.memoryUsage().rss / 1024 ** 2)} MiB`,
  );
  expect(group.state.holds).toBe(LOCKS);
  checkInvariants(group.state);
  expect(bytes).toBeLessThan(BYTES_MAX);
});
