/** What clients saw, compared with the log (rule S10): by heart, by asking the log, and what proves nothing. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import type { Mark } from '../../api/wire.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import { type RollBackProof, TrimmedError } from '../../log/port.ts';
import { EMPTY_HEAD, hashOf } from '../../log/rules.ts';
import type { MarkOutcome } from '../../platform/metrics.ts';
import { Marks } from './marks.ts';
import { Seals } from './seals.ts';

const KEY = hashOf(Buffer.from('key'));
const seals = new Seals(KEY);
const hashAt = (index: number, branch = 'a'): string => hashOf(Buffer.from(`${branch} ${index}`));
const markAt = (index: number, hash = hashAt(index)): Mark =>
  seals.seal({ lineage: 'l', epoch: 1, index, hash });

/** A leader that begins at `from`, on a log that begins at `start`. */
function bench({ from = 100, start = 1, lastEntry = 1_000, branch = (_index: number): string => 'a' } = {}) {
  const runtime = new VirtualRuntime();
  const outcomes: MarkOutcome[] = [];
  const proofs: RollBackProof[] = [];
  const asked: number[] = [];
  let outages = 0;
  let lineage = 'l';
  const entryHash = async (index: number): Promise<string | null> => {
    asked.push(index);
    if (outages-- > 0) throw new LogUnavailableError('away');
    if (index < start) throw new TrimmedError(start - 1);
    return index > lastEntry ? null : hashAt(index, branch(index));
  };
  const marks = new Marks(
    {
      runtime,
      log: { lineage: 'l', entryHash, standing: async () => ({ lineage, head: EMPTY_HEAD, halted: null }) },
      serverId: 'a',
      sealKey: KEY,
      onOutcome: (outcome) => void outcomes.push(outcome),
      onProof: (proof) => void proofs.push(proof),
    },
    { index: from, hash: hashAt(from, branch(from)) },
  );
  let head = from;
  /** Commits the next entry, and with it what was shown before. */
  const commit = (): RollBackProof | null => {
    const taken = marks.take();
    head++;
    return marks.committed({ index: head, hash: hashAt(head, branch(head)) }, taken);
  };
  const fail = (times: number): void => {
    outages = times;
  };
  const beginLineage = (): void => {
    lineage = 'next';
  };
  return { runtime, marks, outcomes, proofs, asked, commit, fail, beginLineage };
}

describe('a mark', () => {
  test('given out by the leader comes back as it was made, and matches', () => {
    const { marks, commit, outcomes } = bench();
    commit();
    const mark = marks.make({ lineage: 'l', epoch: 7, index: 101 });
    expect(mark).toEqual(seals.seal({ lineage: 'l', epoch: 7, index: 101, hash: hashAt(101) }));
    marks.show(mark);
    expect(marks.isWaiting).toBe(true);
    expect(commit()).toBeNull();
    expect(outcomes).toEqual(['matched']);
    expect(marks.isWaiting).toBe(false);
  });

  test('above the head proves a roll-back with the first commit after it was shown, not before', () => {
    const { marks, commit, outcomes } = bench();
    const taken = marks.take();
    marks.show(markAt(150));
    // Its entry was on its way already when the mark arrived.
    expect(marks.committed({ index: 101, hash: hashAt(101) }, taken)).toBeNull();
    expect(outcomes).toEqual([]);
    const later = marks.take();
    expect(marks.committed({ index: 102, hash: hashAt(102) }, later)).toMatchObject({
      lineage: 'l',
      seenBy: 'client',
      seen: { index: 150, hash: hashAt(150) },
      found: '',
      headIndex: 102,
    });
    expect(outcomes).toEqual(['rolledBack']);
    expect(commit).toThrow('only moves upwards');
  });

  test('with another hash than the entry there proves it too, by heart or by asking', async () => {
    const known = bench();
    known.commit();
    known.marks.show(markAt(101, hashAt(101, 'b')));
    expect(known.commit()).toMatchObject({ found: hashAt(101), seen: { index: 101 } });
    const old = bench();
    old.marks.show(markAt(40, hashAt(40, 'b')));
    expect(old.commit()).toBeNull();
    await old.runtime.pass(1);
    expect(old.proofs).toMatchObject([{ found: hashAt(40), seen: { index: 40 } }]);
  });

  test('of an older entry is asked for once, also over an outage of the log', async () => {
    const { runtime, marks, outcomes, asked, proofs, commit, fail } = bench();
    fail(2);
    for (let client = 0; client < 50; client++) marks.show(markAt(40));
    expect(commit()).toBeNull();
    await runtime.pass(5_000);
    expect(asked).toEqual([40, 40, 40]);
    expect(outcomes).toEqual(['matched']);
    expect(proofs).toEqual([]);
  });

  test('below the start of the log, or of another lineage, proves nothing', async () => {
    const { runtime, marks, outcomes, proofs, commit } = bench({ start: 60 });
    marks.show(markAt(59, hashAt(59, 'b')));
    marks.show(seals.seal({ lineage: 'older', epoch: 9, index: 5_000, hash: hashAt(1) }));
    expect(commit()).toBeNull();
    await runtime.pass(10);
    expect(outcomes).toEqual(['otherLineage', 'trimmed']);
    expect(proofs).toEqual([]);
  });

  test.each(['another entry', 'none'])(
    'proves nothing to a leader that woke up in the next lineage, where %s stands there',
    async (what) => {
      const { runtime, marks, outcomes, proofs, commit, beginLineage } = bench({
        branch: (index) => (index === 40 ? 'next' : 'a'),
        lastEntry: what === 'none' ? 30 : 1_000,
      });
      marks.show(markAt(40));
      expect(commit()).toBeNull();
      beginLineage();
      await runtime.pass(5_000);
      expect(proofs).toEqual([]);
      expect(outcomes).toEqual([]);
      expect(runtime.logged).toEqual([]);
    },
  );

  test('that no leader of this group made proves nothing, whatever was changed in it', () => {
    const { marks, outcomes, commit } = bench();
    const genuine = markAt(90);
    const forged: readonly Mark[] = [
      { ...genuine, index: 5_000 },
      { ...genuine, epoch: 2 },
      { ...genuine, hash: hashAt(90, 'b') },
      { ...genuine, hash: '' },
      { ...genuine, hash: 'x'.repeat(1_000_000) },
      { ...genuine, seal: '' },
      { ...genuine, seal: '0'.repeat(64) },
      new Seals(hashOf(Buffer.from('another key'))).seal({
        lineage: 'l',
        epoch: 1,
        index: 5_000,
        hash: hashAt(1),
      }),
    ];
    for (const mark of forged) marks.show(mark);
    expect(outcomes).toEqual(forged.map(() => 'forged'));
    expect(marks.isWaiting).toBe(false);
    expect(commit()).toBeNull();
  });
});

test('whatever a client saw, a proof is found exactly when the log is not the one that it saw', async () => {
  const histories = fc.record({
    /** Up to here the log is the one that clients saw. */
    fork: fc.integer({ min: 1, max: 60 }),
    head: fc.integer({ min: 1, max: 60 }),
    seen: fc.array(fc.integer({ min: 1, max: 80 }), { minLength: 1, maxLength: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(histories, async ({ fork, head, seen }) => {
      const branch = (index: number): string => (index <= fork ? 'a' : 'b');
      const { runtime, marks, proofs, commit } = bench({ from: head, branch });
      for (const index of seen) marks.show(markAt(index));
      const atOnce = commit();
      await runtime.pass(10);
      const isRolledBack = seen.some((index) => index > Math.min(fork, head + 1));
      expect(atOnce !== null || proofs.length > 0).toBe(isRolledBack);
    }),
    { numRuns: 300 },
  );
});
