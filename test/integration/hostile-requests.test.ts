/**
 * A short hostile-input run against a real process, in every `npm test`; the long one, with manifests and memory, is
 * test/long/hostile.test.ts. LEASEHOLD_SEED repeats the choices.
 */
import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { HostileClient, onesided } from '../long/support/hostile-run.ts';
import { writeMixed } from '../long/support/mixed.ts';
import { OwnDev } from '../support/dev/own-dev.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));
const REQUESTS = 2_000;
/** On a machine that other work keeps busy, a call may be told UNAVAILABLE; never anything else. */
const UNAVAILABLE_SHARE_MAX = 0.02;
const TIMEOUT_MS = 90_000;

it(
  `${REQUESTS} hostile requests over every route are answered below 500 (LEASEHOLD_SEED=${seed})`,
  async (context) => {
    const own = new OwnDev(context);
    const workspace = own.workspace();
    writeMixed(workspace, { name: 'hostile', limits: { sessions: 20_000 } });
    const dev = await own.start(workspace);
    const client = new HostileClient(dev.port);
    context.onTestFinished(() => client.end());
    const outcome = await client.run({ seed, requests: REQUESTS });
    expect(outcome.sent).toBeGreaterThanOrEqual(REQUESTS);
    expect(outcome.unavailable).toBeLessThan(REQUESTS * UNAVAILABLE_SHARE_MAX);
    expect(outcome.statuses.size).toBeGreaterThan(20);
    expect(onesided(outcome).length).toBeLessThan(outcome.statuses.size / 3);
    const api = own.api(dev, 'hostile');
    const held = await api.lock('still-works', { client: 'good' });
    expect((await api.release(held)).status).toBe(200);
    expect(await dev.stop()).toEqual({ code: 0, signal: null });
    expect(dev.stderr).toBe('');
  },
  TIMEOUT_MS,
);
