/** A session's end that makes the state machine throw, and administrators' commands that must not get that far: rule C13. */
import { describe, expect, test } from 'vitest';
import { TTL_MS } from '../../../test/support/core.ts';
import { attachCommand } from '../../../test/support/virtual/leader-bench.ts';
import { poisoned } from '../../../test/support/virtual/poison.ts';
import type { Command } from '../../api/entry.ts';

const BEAT_MS = 250;

/** A session with three locks expires, and the step that would free one of them throws. */
async function brokenEnd() {
  const { probe, bench, front } = await poisoned({ lockDelayMs: 0 });
  const [mortal, other] = [await front.open(1), await front.open(2, { ttlMs: 60_000 })];
  for (const name of ['a', 'b', 'c']) await front.acquire(1, { session: mortal, key: name, name });
  await front.acquire(2, { session: other, key: 'w', name: 'c', waitMs: 60_000 });
  probe.name = 'b';
  await bench.runtime.pass(TTL_MS + 2 * BEAT_MS);
  return { probe, bench, front, mortal, other };
}

describe('rule C13: a step of a session’s end that throws', () => {
  test('puts its name out of service, and the session’s end goes past it: the others are freed, the replica goes on', async () => {
    const { probe, bench, front, mortal, other } = await brokenEnd();
    expect(bench.stopped).toEqual([]);
    expect(probe.hits).toBe(1);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'quarantined', name: 'b' }));
    const freed = bench.events.flatMap((event) => (event.type === 'expired' ? [event.name] : []));
    expect(freed).toEqual(['a', 'c']);
    expect(front.notices.map(({ what }) => what.event)).toContainEqual(
      expect.objectContaining({ type: 'granted', session: other, name: 'c' }),
    );
    expect(await front.acquire(2, { session: other, key: 'x', name: 'b' })).toMatchObject({
      code: 'QUARANTINED',
    });
    expect(bench.leader.state.sessions.get(mortal)?.ending).toBe('expired');
    expect(await front.get(1, attachCommand(mortal, 2))).toMatchObject({ code: 'SESSION_EXPIRED' });
    await bench.runtime.pass(10 * TTL_MS);
    expect(bench.events).not.toContainEqual({ type: 'sessionEnded', session: mortal });
    expect([bench.stopped, probe.hits]).toEqual([[], 1]);
  });

  test('a replica that starts anew stands where the last one stood, and unquarantine ends the session', async () => {
    const { bench, mortal } = await brokenEnd();
    const { eventHash } = bench.leader.state;
    await bench.lead();
    expect(bench.leader.state.eventHash).not.toBe(eventHash);
    expect(bench.leader.state.sessions.get(mortal)?.ending).toBe('expired');
    expect(bench.leader.state.locks.get('b')?.quarantined).toBe(true);
    expect(await bench.submit({ type: 'unquarantine', name: 'b', by: 'me' })).toEqual({ type: 'done' });
    await bench.runtime.pass(BEAT_MS);
    expect(bench.events).toContainEqual(
      expect.objectContaining({ type: 'expired', name: 'b', session: mortal }),
    );
    expect(bench.events).toContainEqual({ type: 'sessionEnded', session: mortal });
    expect(bench.leader.state.locks.has('b')).toBe(false);
    expect(bench.stopped).toEqual([]);
  });

  test('an unquarantine that makes it throw again is refused as often as it is asked for, then done', async () => {
    const { probe, bench, front, mortal, other } = await brokenEnd();
    const unquarantine = { type: 'unquarantine', name: 'b', by: 'me' } as const;
    for (let i = 0; i < 6; i++) {
      expect(await bench.submit(unquarantine)).toMatchObject({
        type: 'rejected',
        code: 'INVALID',
        message: expect.stringContaining('nothing was changed'),
      });
    }
    expect(bench.stopped).toEqual([]);
    expect(bench.leader.state.locks.get('b')?.quarantined).toBe(true);
    probe.name = null;
    expect(await bench.submit(unquarantine)).toEqual({ type: 'done' });
    await bench.runtime.pass(BEAT_MS);
    expect(bench.events).toContainEqual({ type: 'sessionEnded', session: mortal });
    expect(await front.acquire(2, { session: other, key: 'y', name: 'b' })).toMatchObject({
      type: 'granted',
    });
  });
});

test('a command of an administrator that cannot be written into an entry is refused, and the leader goes on', async () => {
  const { bench, front } = await poisoned();
  const session = await front.open(1);
  const sent = bench.log.sent.length;
  const broken = { type: 'break', name: 'a', token: 1, now: false, reason: 'r', by: 'me' } as const;
  const malformed: readonly Command[] = [
    { ...broken, reason: '\ud800' },
    { ...broken, token: 1.5 },
    { ...broken, token: -1 },
    { type: 'quarantine', name: 'a', reason: undefined as unknown as string },
    { type: 'configure', version: Number.NaN, config: null },
    { type: 'nonsense' } as unknown as Command,
  ];
  for (const command of malformed) {
    expect(await bench.submit(command)).toMatchObject({ type: 'refused', code: 'INVALID' });
    const [good, bad] = await bench.leader.submit([{ type: 'quarantine', name: 'q', reason: 'r' }, command]);
    expect([good?.type, bad?.type]).toEqual(['refused', 'refused']);
  }
  expect(bench.log.sent.length).toBe(sent);
  expect(bench.leader.state.locks.has('q')).toBe(false);
  expect(await front.acquire(1, { session, key: 'k' })).toMatchObject({ type: 'granted' });
  expect(bench.stopped).toEqual([]);
});
