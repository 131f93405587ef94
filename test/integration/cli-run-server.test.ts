/** `leasehold run` when its server dies. Each test has a server of its own. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';
import { begun, isAlive, RunProcess, STUBBORN, tokensInTurn } from './cli-run/run-process.ts';

const TTL_MS = 5_000;
const TEST_MS_MAX = 90_000;
const EXIT_LOST = 122;

vi.setConfig({ testTimeout: TEST_MS_MAX });

test('kill -9 of the server, for good: CMD is ended by the deadline', async (context) => {
  const own = new OwnDev(context);
  const workspace = own.workspace({ name: 'jobs' });
  const dev = await own.start(workspace);
  const file = join(workspace.root, 'file');
  const run = new RunProcess({ url: dev.url, name: 'jobs/a', script: STUBBORN, file });
  await begun(file, 1);
  const cmd = await run.cmd();
  await dev.kill();
  expect(await eventually(() => !isAlive(cmd), TTL_MS)).toBeLessThan(TTL_MS - 500);
  expect(await run.exited).toBe(EXIT_LOST);
  expect(run.stderr).toContain('no renewal was acknowledged in time');
});

test('kill -9 of the server, which comes back within the lease: CMD notices nothing', async (context) => {
  const own = new OwnDev(context);
  const workspace = own.workspace({ name: 'jobs', lease: { ttl: '60s' } });
  const dev = await own.start(workspace);
  const { port, url } = dev;
  const file = join(workspace.root, 'file');
  const script = 'echo "begin $LEASEHOLD_TOKEN" >>"$0"; while ! test -e "$0.end"; do sleep 0.2; done; exit 6';
  const run = new RunProcess({ url, name: 'jobs/a', script, file });
  await begun(file, 1);
  await dev.kill();
  const next = own.spawn(workspace, port);
  await next.serving();
  const api = own.api(next, 'jobs');
  expect(await api.tokenOf('a')).toBe(tokensInTurn(file)[0]);
  writeFileSync(`${file}.end`, '');
  expect(await run.exited).toBe(6);
  expect(await api.tokenOf('a')).toBeNull();
});
