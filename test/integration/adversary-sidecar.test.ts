/** What a user of the sidecar is not meant to do, or does at the worst moment: nothing of it may cost anybody a lock in silence. */
import { describe, expect, test } from 'vitest';
import { Pod } from '../support/virtual/pod.ts';

const MODES = { modes: ['exclusive', 'shared', 'semaphore'] } as const;

describe('a session that came with a lock', () => {
  test('and was used for another one too does not end while that is held', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.acquire('a', { client: 'one' });
    const keeping = pod.keepAlive(sessionId);
    const other = await pod.acquire('b', { sessionId });
    expect(await pod.release('a', sessionId, token)).toEqual({ already: false });
    await pod.runtime.pass(100);
    expect(pod.held('b', other.token).held).toBe(true);
    expect(await pod.jobs.tokenOf('b')).toBe(other.token);
    expect(await pod.release('b', sessionId, other.token)).toEqual({ already: false });
    await pod.runtime.pass(100);
    expect(pod.jobs.replica.status()).toMatchObject({ sessions: 0, held: 0 });
    keeping.stop();
  });

  test('and waits for another one keeps its place', async () => {
    const pod = await Pod.start();
    const holder = await pod.holding('b');
    const { sessionId, token } = await pod.acquire('a', { client: 'one' });
    const waiting = pod.acquiring('b', { sessionId, waitMs: 60_000 });
    await pod.runtime.pass(100);
    await pod.release('a', sessionId, token);
    await pod.runtime.pass(100);
    expect(waiting.outcome.value).toBeNull();
    await pod.release('b', holder.sessionId, holder.token);
    const granted = await pod.runtime.until(waiting.granted, 1_000);
    expect(pod.held('b', granted.token).held).toBe(true);
  });
});

describe('a repeat after a restart', () => {
  test('whose caller hangs up does not take the lock from whoever got it before', async () => {
    const pod = await Pod.start();
    const { sessionId, token } = await pod.holding('a', { request: 'r' });
    await pod.restart();
    await pod.runtime.pass(100);
    const again = pod.acquiring('a', { sessionId, request: 'r' });
    again.hangUp();
    await pod.runtime.pass(100);
    expect(pod.held('a', token).held).toBe(true);
    expect(await pod.jobs.tokenOf('a')).toBe(token);
  });
});

describe('outcomes that the group keeps until they are acknowledged (rule C5)', () => {
  test.each(['held', 'given back after the restart', 'given back before it'] as const)(
    'those of an earlier life do not fill the session up: %s',
    async (what) => {
      const pod = await Pod.start();
      const sessionId = await pod.open();
      const keeping = pod.keepAlive(sessionId);
      for (let life = 0; life < 2; life++) {
        const burst = Array.from({ length: 200 }, (_, i) => {
          const request = `r${life}-${i}`;
          return { name: `a${life}-${i}`, acquiring: pod.acquiring(`a${life}-${i}`, { sessionId, request }) };
        });
        const granted: { readonly name: string; readonly token: number }[] = [];
        for (const { name, acquiring } of burst)
          granted.push({ name, token: (await pod.runtime.until(acquiring.granted, 1_000)).token });
        const giveBack = async (): Promise<void> => {
          const releases = granted.map(({ name, token }) =>
            pod.sidecar.release(`jobs/${name}`, { sessionId, token }),
          );
          await pod.runtime.until(Promise.all(releases), 1_000);
        };
        if (what === 'given back before it') await giveBack();
        await pod.restart();
        await pod.runtime.pass(10);
        if (what === 'given back after the restart') await giveBack();
      }
      for (let i = 0; i < 5; i++)
        expect((await pod.acquire(`z${i}`, { sessionId })).token).toBeGreaterThan(0);
      keeping.stop();
    },
  );
});

describe('many outcomes at one moment (rule C5)', () => {
  test('hundreds of readers of one session that are let in together leave it room for the next acquire', async () => {
    const pod = await Pod.start({ config: MODES });
    const writer = await pod.holding('a');
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const readers = Array.from({ length: 600 }, () =>
      pod.acquiring('a', { sessionId, mode: 'shared', waitMs: 60_000 }),
    );
    await pod.runtime.pass(100);
    await pod.release('a', writer.sessionId, writer.token);
    await pod.runtime.pass(100);
    expect(readers.filter(({ outcome }) => outcome.value === 'granted')).toHaveLength(600);
    expect((await pod.acquire('b', { sessionId })).token).toBeGreaterThan(0);
  });

  test('hundreds of acquires at once are all granted; one that is given up in its turn is never sent', async () => {
    const pod = await Pod.start();
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const burst = Array.from({ length: 1_000 }, (_, i) => pod.acquiring(`a${i}`, { sessionId }));
    await pod.runtime.pass(0);
    burst.at(-1)?.hangUp();
    await pod.runtime.pass(1_000);
    expect(burst.filter(({ outcome }) => outcome.value === 'granted')).toHaveLength(999);
    expect(burst.at(-1)?.outcome.value).toBe('CANCELLED');
    expect(pod.jobs.replica.status()).toMatchObject({ held: 999 });
    expect(pod.jobs.line.requests('acquire')).toHaveLength(999);
    expect(pod.jobs.line.requests('acquire').map(({ name }) => name)).toEqual(
      Array.from({ length: 999 }, (_, i) => `a${i}`),
    );
  });

  test('hundreds that time out together do too', async () => {
    const pod = await Pod.start();
    await pod.holding('a');
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const waiters = Array.from({ length: 600 }, () => pod.acquiring('a', { sessionId, waitMs: 1_000 }));
    await pod.runtime.pass(1_500);
    expect(waiters.filter(({ outcome }) => outcome.value === 'WAIT_TIMEOUT')).toHaveLength(600);
    expect((await pod.acquire('b', { sessionId })).token).toBeGreaterThan(0);
  });
});

describe('many holders of one name', () => {
  test('each token answers for itself', async () => {
    const pod = await Pod.start({ config: MODES });
    const sessionId = await pod.open();
    pod.keepAlive(sessionId);
    const tokens: number[] = [];
    for (let i = 0; i < 130; i++) tokens.push((await pod.acquire('a', { sessionId, mode: 'shared' })).token);
    const gone = tokens[120] as number;
    await pod.release('a', sessionId, gone);
    for (const token of tokens) expect(pod.held('a', token).held).toBe(token !== gone);
    expect(await pod.jobs.lock('a')).toMatchObject({ holderCount: 129 });
  });
});
