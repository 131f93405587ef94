/** Snapshots: what is read back behaves like what was written; anything else is refused. test/model looks for more. */
import { describe, expect, it } from 'vitest';
import { LINEAGE, openCommand, SECRET_HASH, TestGroup, traceOf } from '../../test/support/core.ts';
import { apply, createState, FormatError, SnapshotReader, type State, writeSnapshot } from './index.ts';

function readBack(lines: Iterable<string>): State {
  const reader = new SnapshotReader();
  for (const line of lines) reader.line(line);
  return reader.finish();
}

/** Everything a state can hold at once: also keys whose order differs from that of holds and waits. */
function everything(): TestGroup {
  const group = new TestGroup({ config: { lockDelayMs: 5_000, consumers: null } });
  const [a, b, c, d] = [group.open(), group.open({ maxHoldMs: 60_000 }), group.open(), group.open()];
  const x = group.lock(a, 'x', { key: 'first', purpose: 'é\u0301 🔒 "\\' });
  group.lock(b, 'y', { key: 'held' });
  group.wait(b, 'x', { key: 'early' });
  group.lock(b, 'z', { key: 'late' });
  group.wait(c, 'x', { key: 'second' });
  group.wait(c, 'y', { key: 'third' });
  group.acquire(c, 'y', { key: 'refused' });
  group.attach(b, 7);
  group.cancel(b, 'none', { acks: ['held'] });
  // `early` is now granted after `late`, though it was asked for before.
  group.pass(1_000);
  group.release(a, 'x', x);
  group.breakLock('y', 2);
  group.lock(d, 'delayed');
  group.expire(d);
  group.lock(a, 'quarantined', { key: 'q' });
  group.quarantine('quarantined');
  group.quarantine('nobody');
  return group;
}

describe('a snapshot', () => {
  it('rule L3: reads back as the same state', () => {
    const { state } = everything();
    const copy = readBack(writeSnapshot(state));
    expect(traceOf(copy).toSorted()).toEqual(traceOf(state).toSorted());
    expect(copy).toMatchObject({ epoch: state.epoch, index: state.index, at: state.at });
  });

  it('rule L3: goes on exactly as the state it was taken from', () => {
    const group = everything();
    const copy = readBack(writeSnapshot(group.state));
    for (const afterMs of [0, 1_000, 4_000, 10_000, 30_000, 60_000, 600_000, 86_400_000]) {
      const attach = 8 + group.state.index;
      const draft = group.draft(
        [
          // Lists its grants by rising token, which is not the order of its keys.
          { type: 'attach', session: 2, attach, secretHash: SECRET_HASH },
          openCommand(),
          group.acquireCommand(3, 'x', { waitMs: 5_000 }),
        ],
        afterMs,
      );
      expect(apply(copy, draft)).toEqual(group.run(draft.commands, afterMs));
      expect(copy.eventHash).toBe(group.state.eventHash);
    }
    expect(traceOf(copy).toSorted()).toEqual(traceOf(group.state).toSorted());
  });

  it('rules L3, C10: taken while a session is ending, it goes on ending it', () => {
    const group = new TestGroup();
    const session = group.openWithLocks(2_003);
    group.expire(session);
    const copy = readBack(writeSnapshot(group.state));
    const { events } = apply(copy, group.draft([]));
    expect(events).toHaveLength(4);
    expect(events.at(-1)).toEqual({ type: 'sessionEnded', session });
    expect(events).toEqual(group.pass(0));
  });

  it('rule L3: is the same text when it is written again', () => {
    const { state } = everything();
    const lines = [...writeSnapshot(state)];
    const again = [...writeSnapshot(readBack(lines))];
    expect(again.toSorted()).toEqual(lines.toSorted());
    expect(again[0]).toBe(lines[0]);
  });

  it('rule L3: of an empty state is two lines', () => {
    const state = createState(LINEAGE);
    const lines = [...writeSnapshot(state)];
    expect(lines).toHaveLength(2);
    expect(readBack(lines)).toEqual(state);
  });
});

describe('what is not a snapshot', () => {
  const lines = [...writeSnapshot(everything().state)];
  const [header = ''] = lines;
  const wrongs: [what: string, lines: string[]][] = [
    ['nothing', []],
    ['a header alone', [header]],
    ['a lost header', lines.slice(1)],
    ['a lost end', lines.slice(0, -1)],
    ['a line after the end', [...lines, lines[1] ?? '']],
    ['the header twice', [header, ...lines]],
    ['a lost session', lines.filter((line) => !line.startsWith('["session"'))],
    ['a lost key', lines.filter((line) => !line.includes('"held"'))],
    ['another format', [header.replace('"format":1', '"format":2'), ...lines.slice(1)]],
    ['another file', ['{"kind":"something else"}', ...lines.slice(1)]],
    ['text that is not JSON', [header, '["session",{']],
    ['no text', [header, '']],
    ['an unknown line', [header, '["other",1]']],
    ['a number', [header, '5']],
    ['null', ['null']],
    ['a line without fields', [header, '["key"]', '["lock"]', '["end"]']],
  ];

  it.each(wrongs)('rule L3: %s is a FormatError', (_what, given) => {
    expect(() => readBack(given)).toThrow(FormatError);
  });

  it('rule L3: every line cut short is a FormatError', () => {
    for (const [place, line] of lines.entries()) {
      const cut = lines.with(place, line.slice(0, line.length >> 1));
      expect(() => readBack(cut)).toThrow(FormatError);
    }
  });
});
