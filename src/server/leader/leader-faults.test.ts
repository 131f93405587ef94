/** What makes the state machine throw is put out of the way, and nothing else with it: rule C13. */
import { describe, expect, test } from 'vitest';
import { acquireCommand, namespaceConfig, TTL_MS } from '../../../test/support/core.ts';
import { attachCommand } from '../../../test/support/virtual/leader-bench.ts';
import { Poison, poisoned } from '../../../test/support/virtual/poison.ts';
import type { Command } from '../../api/entry.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import { MemoryLog } from '../../log/memory-log.ts';
import { Leader } from './leader.ts';

const BEAT_MS = 250;

function isAcquireOf(name: string): (command: Command) => boolean {
  return (command) => command.type === 'acquire' && command.name === name;
}

describe('rule C13: a command that throws', () => {
  test('is told INVALID, its session ends, and everybody else’s work in the same batch is done', async () => {
    const { probe, bench, front } = await poisoned();
    const [culprit, other] = [await front.open(1), await front.open(2)];
    await front.acquire(1, { session: culprit, key: 'mine', name: 'mine' });
    probe.command = isAcquireOf('poison');
    const [before] = front.ask(2, acquireCommand({ session: other, key: 'k1', name: 'b' }));
    const [bad] = front.ask(1, acquireCommand({ session: culprit, key: 'p', name: 'poison' }));
    const [own] = front.ask(1, acquireCommand({ session: culprit, key: 'q', name: 'c' }));
    const [after, read] = front.ask(2, acquireCommand({ session: other, key: 'k2', name: 'd' }), {
      type: 'getLock',
      name: 'b',
    });
    front.keepalive(2, 9, [other, 1]);
    await bench.runtime.pass(1);
    expect(front.answerTo(bad)).toMatchObject({ type: 'rejected', code: 'INVALID' });
    expect(front.answerTo(own)).toMatchObject({ type: 'refused', code: 'SESSION_EXPIRED' });
    expect(front.answerTo(before)).toMatchObject({ type: 'granted' });
    expect(front.answerTo(after)).toMatchObject({ type: 'granted' });
    expect(front.answerTo(read)).toMatchObject({ type: 'lock', lock: { holders: [{ session: other }] } });
    front.keepalive(1, 4, [culprit, 1]);
    await bench.runtime.pass(BEAT_MS);
    expect(front.keepalives.map(({ what }) => what)).toMatchObject([
      { number: 9, sessions: [{ session: other, alive: true }] },
      { number: 4, sessions: [{ session: culprit, alive: false }] },
    ]);
    expect(bench.stopped).toEqual([]);
    expect(probe.hits).toBe(1);
  });

  test('what its session holds is free when its client cannot believe in it any more, and nothing renews it', async () => {
    const { probe, bench, front } = await poisoned();
    const [culprit, other] = [await front.open(1), await front.open(2)];
    await front.acquire(1, { session: culprit, key: 'mine', name: 'mine' });
    await bench.runtime.pass(TTL_MS / 2);
    front.keepalive(1, 1, [culprit, 1]);
    await bench.runtime.pass(BEAT_MS);
    const renewedMs = bench.runtime.nowMs;
    probe.command = isAcquireOf('poison');
    front.ask(1, acquireCommand({ session: culprit, key: 'p', name: 'poison' }));
    await bench.runtime.pass(1);
    const isEnded = (): boolean => bench.events.some(({ type }) => type === 'sessionEnding');
    for (let number = 2; !isEnded() && number < 20; number++) {
      front.keepalive(1, number, [culprit, 1]);
      front.keepalive(2, number, [other, 1]);
      expect(await front.get(1, attachCommand(culprit, number))).toMatchObject({ code: 'SESSION_EXPIRED' });
      expect(bench.leader.state.locks.get('mine')?.hold?.record.session.id).toBe(culprit);
      await bench.runtime.pass(TTL_MS / 10);
    }
    expect(bench.runtime.nowMs - renewedMs).toBeGreaterThanOrEqual(TTL_MS - BEAT_MS);
    expect(bench.runtime.nowMs - renewedMs).toBeLessThan(TTL_MS * 1.2);
    expect(bench.events).toContainEqual({ type: 'sessionEnding', session: culprit, cause: 'threw' });
    expect(bench.events).toContainEqual(
      expect.objectContaining({ type: 'expired', name: 'mine', cause: 'threw' }),
    );
    expect(bench.events.filter(({ type }) => type === 'sessionEnding')).toHaveLength(1);
  });

  test('of a leader that has been deposed meanwhile: it stops, and makes nothing of the entries of its successor', async () => {
    const { probe, bench, front } = await poisoned();
    const session = await front.open(1);
    probe.command = isAcquireOf('poison');
    const successor = Leader.start({
      runtime: bench.runtime,
      log: new MemoryLog(bench.store),
      ...{ serverId: 'successor', reason: 'test', replicas: 1, tokenFloor: 0, beatWhenIdle: false },
      onStopped: () => undefined,
    });
    await bench.runtime.until(successor, 1_000);
    const [bad] = front.ask(1, acquireCommand({ session, key: 'p', name: 'poison' }));
    await bench.runtime.pass(1_000);
    expect(bench.stopped).toEqual([{ kind: 'deposed' }]);
    expect(front.answerTo(bad)).toBeUndefined();
  });

  test('throws once, however often it waits already: in its batch, and behind it', async () => {
    const { probe, bench, front } = await poisoned();
    const [session, other] = [await front.open(1), await front.open(2)];
    probe.command = isAcquireOf('poison');
    const poison = acquireCommand({ session, key: 'p', name: 'poison' });
    const [first, again, good] = [
      ...front.ask(1, poison, poison),
      ...front.ask(2, acquireCommand({ session: other, key: 'k', name: 'b' })),
    ];
    bench.runtime.timers.soon(() => void front.ask(1, poison));
    await bench.runtime.pass(BEAT_MS);
    for (const id of [first, again])
      expect(front.answerTo(id)).toMatchObject({ type: 'rejected', code: 'INVALID' });
    expect(front.answerTo(good)).toMatchObject({ type: 'granted' });
    expect(probe.hits).toBe(1);
  });

  test('throws once also where its session is condemned, and it is put to the core as of none', async () => {
    const { probe, bench, front } = await poisoned();
    const session = await front.open(1);
    probe.command = isAcquireOf('poison');
    front.ask(1, acquireCommand({ session, key: 'p', name: 'poison' }));
    await bench.runtime.pass(BEAT_MS);
    probe.command = ({ type }) => type === 'cancel';
    for (let round = 0; round < 3; round++) {
      const [id] = front.ask(1, { type: 'cancel', session, attach: 1, key: 'k', acks: [] });
      await bench.runtime.pass(BEAT_MS);
      expect(front.answerTo(id)).toMatchObject({ type: 'rejected', code: 'INVALID' });
    }
    expect(probe.hits).toBe(2);
  });

  test('while the log does not answer the state waits to be made again, and the leader stays', async () => {
    const { probe, bench, front } = await poisoned();
    const session = await front.open(1);
    probe.command = isAcquireOf('poison');
    const { log } = bench;
    const { snapshots } = log;
    log.snapshots = () => Promise.reject(new LogUnavailableError('no quorum'));
    const [bad] = front.ask(1, acquireCommand({ session, key: 'p', name: 'poison' }));
    await bench.runtime.pass(1_000);
    expect(front.answerTo(bad)).toBeUndefined();
    log.snapshots = snapshots;
    await bench.runtime.pass(1_000);
    expect(front.answerTo(bad)).toMatchObject({ type: 'rejected', code: 'INVALID' });
    expect(bench.stopped).toEqual([]);
  });

  test('nothing of it stands in the log, and a replica that starts anew has the same state', async () => {
    const { probe, bench, front } = await poisoned();
    const [culprit, other] = [await front.open(1), await front.open(2)];
    probe.command = isAcquireOf('poison');
    front.ask(1, acquireCommand({ session: culprit, key: 'p', name: 'poison' }));
    const [good] = front.ask(2, acquireCommand({ session: other, key: 'k', name: 'b' }));
    await bench.runtime.pass(1);
    const granted = front.answerTo(good);
    const commands = bench.log.entries.flatMap((entry) => entry.commands);
    expect(commands.filter(isAcquireOf('poison'))).toEqual([]);
    const { eventHash } = bench.leader.state;
    expect(bench.history.at(-1)?.eventHash).toBe(eventHash);
    await bench.lead();
    expect(bench.leader.state.locks.get('b')?.hold?.token).toBe((granted as { token: number }).token);
  });

  test('a repeat is refused at once: no rebuild, no commit', async () => {
    const { probe, bench, front } = await poisoned();
    const [culprit, other] = [await front.open(1), await front.open(2)];
    probe.command = isAcquireOf('poison');
    const command = acquireCommand({ session: culprit, key: 'p', name: 'poison' });
    front.ask(1, command);
    await bench.runtime.pass(1);
    const [sent, reads] = [bench.log.sent.length, bench.log.calls.reads];
    const [again] = front.ask(1, command);
    expect(front.answerTo(again)).toMatchObject({ type: 'rejected', code: 'INVALID' });
    await bench.runtime.pass(1);
    expect([bench.log.sent.length, bench.log.calls.reads, probe.hits]).toEqual([sent, reads, 1]);
    expect(await front.acquire(2, { session: other, key: 'k' })).toMatchObject({ type: 'granted' });
  });

  test('several in one batch are all found', async () => {
    const { probe, bench, front } = await poisoned();
    const sessions: number[] = [];
    for (let client = 1; client <= 6; client++) sessions.push(await front.open(client));
    probe.command = (command) => command.type === 'acquire' && command.name.startsWith('poison');
    const ids = sessions.flatMap((session, i) =>
      front.ask(
        i + 1,
        acquireCommand({ session, key: 'k', name: i % 2 === 0 ? `poison-${i}` : `good-${i}` }),
      ),
    );
    await bench.runtime.pass(1);
    expect(ids.map((id) => front.answerTo(id)?.type)).toEqual([
      'rejected',
      'granted',
      'rejected',
      'granted',
      'rejected',
      'granted',
    ]);
    for (let passed = 0; passed <= TTL_MS; passed += TTL_MS / 10) {
      for (const [i, session] of sessions.entries()) front.keepalive(i + 1, 1, [session, 1]);
      await bench.runtime.pass(TTL_MS / 10);
    }
    expect(bench.leader.state.sessions.size).toBe(3);
  });

  test('an administrator’s is told to the administrator, and the leader goes on', async () => {
    const { probe, bench, front } = await poisoned();
    const session = await front.open(1);
    probe.command = ({ type }) => type === 'unquarantine';
    const answer = await bench.submit({ type: 'unquarantine', name: 'a', by: 'me' });
    expect(answer).toMatchObject({ type: 'rejected', code: 'INVALID' });
    expect(await front.acquire(1, { session, key: 'k' })).toMatchObject({ type: 'granted' });
  });

  const administrators: readonly { readonly command: Command; readonly throws: number }[] = [
    // Not remembered: asked for again once the cause is mended.
    { command: { type: 'unquarantine', name: 'a', by: 'me' }, throws: 10 },
    { command: { type: 'break', name: 'a', token: 1, now: false, by: 'me', reason: '' }, throws: 1 },
    { command: { type: 'configure', version: 2, config: namespaceConfig({ lockDelayMs: 1 }) }, throws: 1 },
  ];

  test.each(administrators)(
    'an administrator’s $command.type, sent ten times, does not stop the leader, and costs $throws rebuild(s)',
    async ({ command, throws }) => {
      const { probe, bench, front } = await poisoned();
      const session = await front.open(1);
      probe.command = ({ type }) => type === command.type;
      for (let time = 0; time < 10; time++)
        expect(await bench.submit(command)).toMatchObject({ code: 'INVALID' });
      expect(probe.hits).toBe(throws);
      expect(bench.stopped).toEqual([]);
      expect(await front.acquire(1, { session, key: 'k' })).toMatchObject({ type: 'granted' });
    },
  );

  test('one of the leader’s own that throws again and again stops it, with the reason, instead of rebuilding for ever', async () => {
    const { probe, bench, front } = await poisoned();
    const session = await front.open(1);
    probe.command = ({ type }) => type === 'expireSessions';
    await bench.runtime.pass(TTL_MS + 10 * BEAT_MS);
    expect(bench.stopped).toMatchObject([
      { kind: 'failed', error: { message: 'poison command expireSessions' } },
    ]);
    expect(probe.hits).toBeLessThan(10);
    expect(session).toBe(1);
  });
});

describe('rule C13: a timer that throws', () => {
  test('puts its name out of service; everything else in the entry is done', async () => {
    const { probe, bench, front } = await poisoned();
    const [holder, other] = [await front.open(1, { ttlMs: 60_000 }), await front.open(2, { ttlMs: 60_000 })];
    await front.acquire(1, { session: holder, key: 'h', name: 'a' });
    await front.acquire(2, { session: other, key: 'w', name: 'a', waitMs: 3_000 });
    await front.acquire(1, { session: holder, key: 'h2', name: 'b' });
    await front.acquire(2, { session: other, key: 'w2', name: 'b', waitMs: 3_000 });
    probe.name = 'a';
    await bench.runtime.pass(3_100);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'quarantined', name: 'a' }));
    const refusals = front.notices.map(({ what }) => what.event);
    expect(refusals).toContainEqual(
      expect.objectContaining({ type: 'refused', name: 'a', code: 'QUARANTINED' }),
    );
    expect(refusals).toContainEqual(
      expect.objectContaining({ type: 'refused', name: 'b', code: 'WAIT_TIMEOUT' }),
    );
    expect(await front.acquire(2, { session: other, key: 'x', name: 'a' })).toMatchObject({
      code: 'QUARANTINED',
    });
    expect(await front.acquire(2, { session: other, key: 'y', name: 'c' })).toMatchObject({
      type: 'granted',
    });
    expect(bench.stopped).toEqual([]);
    expect(probe.hits).toBe(1);
    expect(bench.runtime.logged).toContain(
      'lock quarantined: a step of its own made the state machine throw',
    );
  });

  test('unquarantine puts it back', async () => {
    const { probe, bench, front } = await poisoned();
    const [holder, other] = [await front.open(1, { ttlMs: 60_000 }), await front.open(2, { ttlMs: 60_000 })];
    const granted = await front.acquire(1, { session: holder, key: 'h', name: 'a' });
    await front.acquire(2, { session: other, key: 'w', name: 'a', waitMs: 1_000 });
    probe.name = 'a';
    await bench.runtime.pass(1_100);
    probe.name = null;
    const token = granted.type === 'granted' ? granted.token : 0;
    await front.get(1, { type: 'release', session: holder, attach: 1, name: 'a', token, key: '', acks: [] });
    expect(await front.acquire(2, { session: other, key: 'x', name: 'a' })).toMatchObject({
      code: 'QUARANTINED',
    });
    expect(await bench.submit({ type: 'unquarantine', name: 'a', by: 'me' })).toEqual({ type: 'done' });
    expect(await front.acquire(2, { session: other, key: 'y', name: 'a' })).toMatchObject({
      type: 'granted',
    });
  });

  test('it also does when sessions expire in the very same entry', async () => {
    const { probe, bench, front } = await poisoned();
    const [holder, waiter] = [await front.open(1, { ttlMs: 60_000 }), await front.open(2, { ttlMs: 60_000 })];
    await front.acquire(1, { session: holder, key: 'h', name: 'a' });
    const mortal = await front.open(3);
    const openedAt = bench.runtime.nowMs;
    const waitMs = TTL_MS + BEAT_MS - (bench.runtime.nowMs - openedAt);
    await front.acquire(2, { session: waiter, key: 'w', name: 'a', waitMs });
    // Nothing can be committed around the moment at which both fall due.
    await bench.runtime.pass(TTL_MS - 200);
    bench.log.hold();
    front.ask(1, { type: 'getLock', name: 'b' });
    await bench.runtime.pass(490);
    probe.name = 'a';
    bench.log.letGo();
    await bench.runtime.pass(2 * BEAT_MS);
    expect(bench.stopped).toEqual([]);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'quarantined', name: 'a' }));
    expect(bench.events).toContainEqual({ type: 'sessionEnding', session: mortal, cause: 'expired' });
    expect(probe.hits).toBe(1);
  });

  test('it also does when it falls due in a take-over, so that no restart is the last one', async () => {
    const { bench, front } = await poisoned();
    const [holder, other] = [await front.open(1, { ttlMs: 60_000 }), await front.open(2, { ttlMs: 60_000 })];
    await front.acquire(1, { session: holder, key: 'h', name: 'a' });
    // More timers fall due at once than one entry may fire: those left over fire in the successor's first entry.
    for (let i = 0; i < 2_100; i++) {
      front.ask(
        1,
        acquireCommand({ session: holder, key: `h${i}`, name: `n${i}`, acks: i === 0 ? [] : [`h${i - 1}`] }),
      );
    }
    await bench.runtime.pass(1);
    for (let i = 0; i < 2_100; i++) {
      const acks = i === 0 ? [] : [`w${i - 1}`];
      front.ask(2, acquireCommand({ session: other, key: `w${i}`, name: `n${i}`, waitMs: 5_000, acks }));
    }
    front.ask(2, acquireCommand({ session: other, key: 'last', name: 'a', waitMs: 5_000 }));
    await bench.runtime.pass(1);
    expect(bench.leader.state.waits).toBe(2_101);
    await bench.runtime.pass(4_900);
    const old = bench.log;
    old.hold();
    front.ask(1, { type: 'getLock', name: 'a' });
    await bench.runtime.pass(200);
    // Only the entry with the first 2,000 gets through before the next one takes over.
    old.letGoOne();
    await bench.runtime.pass(1);
    old.letGoOne();
    await bench.runtime.pass(0);
    expect(bench.leader.state.waits).toBe(101);
    const probe = new Poison();
    probe.name = 'a';
    await bench.lead({ probe });
    await bench.runtime.pass(BEAT_MS);
    expect(bench.events).toContainEqual(expect.objectContaining({ type: 'quarantined', name: 'a' }));
    const next = bench.frontEnd();
    expect(await next.get(1, attachCommand(holder, 2))).toMatchObject({ type: 'attached' });
    expect(bench.leader.state.waits).toBe(0);
  });

  test('a quarantine that throws as well stops the leader, with the reason: what is left would be guessing', async () => {
    const { probe, bench, front } = await poisoned();
    const holder = await front.open(1);
    await front.acquire(1, { session: holder, key: 'h', name: 'a' });
    probe.name = 'a';
    probe.command = ({ type }) => type === 'quarantine';
    await bench.runtime.pass(TTL_MS + 10 * BEAT_MS);
    expect(bench.stopped).toMatchObject([{ kind: 'failed', error: { message: 'poison timer of a' } }]);
    expect(probe.hits).toBeLessThan(20);
    await expect(bench.leader.submit([{ type: 'resign', epoch: 1 }])).rejects.toThrow('does not lead');
  });
});

test('an entry that does not fit the state stops the leader: it must not guess', async () => {
  const { bench, front } = await poisoned();
  const session = await front.open(1);
  Object.assign(bench.leader.state, { index: 77 });
  front.ask(1, acquireCommand({ session, key: 'k' }));
  await bench.runtime.pass(1);
  expect(bench.stopped).toMatchObject([{ kind: 'failed' }]);
  expect(String((bench.stopped[0] as { error: unknown }).error)).toContain('does not follow');
});
