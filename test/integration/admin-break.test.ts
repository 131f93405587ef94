/**
 * Break in virtual time, at every phase of the keepalives: between the deadline of the broken grant and its end in the group the
 * sidecar and the group count different grants, and neither may take that for an error.
 */
import { expect, test } from 'vitest';
import type { LockEvent } from '../../src/api/entry.ts';
import { TTL_MS, VirtualServer } from '../support/dev/virtual-dev.ts';

const LOCK_DELAY_MS = 1_000;
const KEEPALIVE_MS = TTL_MS / 5;
const STEP_MS = 100;

test('a broken grant whose holder lives on ends one TTL after the revoke, and its session goes on undisturbed (rule C9)', async () => {
  const server = await VirtualServer.start({ lockDelayMs: LOCK_DELAY_MS });
  const { runtime, replica } = server;
  const events = new Map<string, { readonly at: number; readonly event: LockEvent }[]>();
  replica.watch(({ at, events: happened }) => {
    for (const event of happened) {
      if (!('name' in event)) continue;
      const ofName = events.get(event.name) ?? [];
      events.set(event.name, [...ofName, { at, event }]);
    }
  });
  const sidecar = server.sidecar();
  const sessionId = await sidecar.open();
  const keeping = sidecar.keepAlive(sessionId);
  for (let phaseMs = 0; phaseMs < KEEPALIVE_MS; phaseMs += STEP_MS) {
    const name = `phase-${phaseMs}`;
    const { token } = await sidecar.acquire(name, { sessionId });
    await runtime.pass(3 * KEEPALIVE_MS + phaseMs);
    const broken = { type: 'break', name, token, now: false, reason: 'it hangs', by: 'alice' } as const;
    expect((await runtime.until(replica.submit(broken), TTL_MS)).type).toBe('done');
    await runtime.pass(2 * TTL_MS);
    const seen = events.get(name) ?? [];
    const types = seen.map(({ event }) => event.type);
    expect(types, name).toEqual(['granted', 'broken', 'revoking', 'revoked', 'delayed']);
    expect((seen[3]?.at ?? 0) - (seen[1]?.at ?? 0)).toBeGreaterThanOrEqual(TTL_MS);
    expect(sidecar.isHeld(name, token)).toBe(false);
  }
  expect(keeping.refused).toEqual([]);
  expect(runtime.logged).toEqual([]);
  keeping.stop();
  expect(server.stopped).toEqual([]);
});
