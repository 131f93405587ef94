/**
 * The hostile-input run: 50,000 requests over every route, every manifest field with every kind of wrong value, and 10,000
 * random manifests. 4xx or success, nothing crashes, nothing is said on stderr, and memory does not grow.
 * Requests use sessions and tokens of the running service, so a seed repeats the choices and not every byte.
 */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseManifests } from '../../src/platform/manifests/parse.ts';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { Workspace } from '../support/dev/workspace.ts';
import { everyFieldEveryValue, hostileManifest } from './support/hostile-manifests.ts';
import { HostileClient, onesided } from './support/hostile-run.ts';
import { inMebibytes, MEBIBYTE, MeasuredDev } from './support/measured-dev.ts';
import { writeMixed } from './support/mixed.ts';

const seed = Number(process.env.LEASEHOLD_SEED ?? randomInt(2 ** 31));
const WARM_UP_REQUESTS = 10_000;
const REQUESTS = 50_000;
const MANIFESTS = 10_000;
const LIVE_MANIFESTS = 200;
const GROWTH_BYTES_MAX = 50 * MEBIBYTE;
/** On a machine that other work keeps busy, a call may be told UNAVAILABLE; never anything else. */
const UNAVAILABLE_SHARE_MAX = 0.01;
/** The longest TTL, after which a session that nobody closed has ended, and some. */
const ENDED_MS_MAX = 90_000;

describe(`hostile input (LEASEHOLD_SEED=${seed})`, () => {
  it(`${REQUESTS} requests over every route, and ${LIVE_MANIFESTS} manifests meanwhile`, async ({
    onTestFinished,
  }) => {
    const workspace = new Workspace();
    writeMixed(workspace, { name: 'hostile', limits: { sessions: 20_000 } });
    workspace.write({ name: 'quiet' });
    const dev = await MeasuredDev.start(workspace);
    const client = new HostileClient(dev.process.port);
    const api = new LockApi(dev.process.port, 'quiet');
    onTestFinished(async () => {
      client.end();
      api.end();
      if (!dev.process.hasExited) await dev.process.kill();
      workspace.remove();
    });
    const allEnded = () =>
      eventually(
        async () => (await api.metric('leasehold_sidecar_sessions{namespace="hostile"}')) === 0,
        ENDED_MS_MAX,
      );

    await client.run({ seed, requests: WARM_UP_REQUESTS });
    await client.closeSessions();
    await allEnded();
    const before = await dev.memory();

    const writing = writeHostileManifests(workspace);
    const outcome = await client.run({ seed: seed + 1_000_000, requests: WARM_UP_REQUESTS + REQUESTS });
    await writing;
    workspace.removeManifest('victim');
    await client.closeSessions();
    await allEnded();
    const after = await dev.memory();

    console.log(
      `before ${inMebibytes(before)}; after ${inMebibytes(after)}; ${outcome.unavailable} UNAVAILABLE`,
    );
    for (const [route, counts] of outcome.statuses)
      console.log(`${route} ${JSON.stringify(Object.fromEntries(counts))}`);
    expect(outcome.sent).toBeGreaterThanOrEqual(WARM_UP_REQUESTS + REQUESTS);
    expect(onesided(outcome).filter((route) => !route.startsWith('GET /openapi.json'))).toEqual([]);
    expect(outcome.unavailable).toBeLessThan(outcome.sent * UNAVAILABLE_SHARE_MAX);
    expect(after.heapBytes - before.heapBytes).toBeLessThan(GROWTH_BYTES_MAX);
    expect(after.rssBytes - before.rssBytes).toBeLessThan(GROWTH_BYTES_MAX);
    // It still does its work, for others and for those who misbehaved.
    const held = await api.lock('a', { client: 'good' });
    expect((await api.release(held)).status).toBe(200);
    expect(await dev.process.stop()).toEqual({ code: 0, signal: null });
    expect(dev.process.stderr.split('\n').filter((line) => !isAboutManifests(line))).toEqual([]);
  });

  /** A file beside the good ones, replaced again and again; now and then it is valid and its namespace is served. */
  async function writeHostileManifests(workspace: Workspace): Promise<void> {
    const texts = fc.sample(hostileManifest, { seed, numRuns: LIVE_MANIFESTS });
    for (const text of texts) {
      workspace.writeText('victim.yaml', text.replace('name: payouts', 'name: victim'));
      await pause(50);
    }
  }

  /** Refused manifests are told of on stderr; nothing else may be. */
  function isAboutManifests(line: string): boolean {
    return (
      line === '' ||
      (!line.startsWith('{"level":"error"') && !/^\s+at /.test(line) && !/unexpected|Error:/.test(line))
    );
  }

  it('every manifest field with every wrong value, and random manifests', () => {
    const counts = { accepted: 0, refused: 0 };
    const check = (text: string): void => {
      const { errors, namespaces } = parseManifests(text, 'f.yaml');
      const lines = text.split('\n').length;
      for (const { line, message } of errors) {
        expect(line >= 1 && line <= lines, message).toBe(true);
        expect(message).not.toMatch(/undefined|\[object|^$/);
      }
      if (errors.length > 0) counts.refused++;
      else counts.accepted += namespaces.length;
    };
    for (const { text } of everyFieldEveryValue()) check(text);
    fc.assert(fc.property(hostileManifest, check), { seed, numRuns: MANIFESTS });
    console.log(`manifests: ${JSON.stringify(counts)}`);
    expect(counts.refused).toBeGreaterThan(MANIFESTS / 2);
    expect(counts.accepted).toBeGreaterThan(MANIFESTS / 100);
  });
});
