/** How a `leasehold run` ends: the lock is taken away, CMD ends, signals come, or there is nothing to run for. Real processes. */
import { join } from 'node:path';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { leasehold } from '../support/cli.ts';
import { eventually } from '../support/dev/lock-api.ts';
import { shareDev } from '../support/dev/shared-dev.ts';
import {
  begun,
  isAlive,
  linesOf,
  nextBegun,
  RunProcess,
  STUBBORN,
  tokensInTurn,
  WORK,
} from './cli-run/run-process.ts';
import { Scene } from './cli-run/scene.ts';

const TTL_MS = 5_000;
/** Promise 2: a dead holder's lock is free by then. The rest is for a busy machine. */
const FREE_MS_MAX = TTL_MS + 1_000 + 10_000;
const TEST_MS_MAX = 90_000;
const EXIT_LOST = 122;

vi.setConfig({ maxConcurrency: 6, testTimeout: TEST_MS_MAX });

/** Where a lease is not to be lost, however busy the machine is. */
const CALM = { ttl: '30s' };
const shared = shareDev(
  { name: 'jobs', lease: { ttl: '5s' } },
  { name: 'calm', lease: CALM },
  { name: 'narrow', lease: CALM, queue: { maxWaiters: 1, maxWait: '1h' } },
);
const sceneOf = (context: TestContext, alias?: string): Scene => new Scene(shared, context, alias);

describe.concurrent('losses', () => {
  test('break: CMD gets TERM and may end by itself; then the lock is free', async (context) => {
    const scene = sceneOf(context);
    const run = scene.run(`trap 'echo "end $LEASEHOLD_TOKEN" >>"$0"; exit 0' TERM; ${WORK}`);
    await begun(scene.file, 1);
    const next = scene.run();
    await scene.waiting();
    await scene.break();
    expect(await run.exited).toBe(EXIT_LOST);
    expect(run.stderr).toContain('the lock is being taken away (break)');
    await nextBegun(scene.file);
    next.kill('SIGTERM');
    await next.exited;
    expect(tokensInTurn(scene.file)).toHaveLength(2);
    expect(linesOf(scene.file).filter((line) => line.startsWith('end'))).toHaveLength(1);
  });

  test('break --now: the next one begins at once, and a CMD that does not listen is killed within a second or two', async (context) => {
    const scene = sceneOf(context);
    const run = scene.run(STUBBORN);
    await begun(scene.file, 1);
    const cmd = await run.cmd();
    await scene.break(true);
    const took = await eventually(() => !isAlive(cmd), 2_500);
    expect(took).toBeLessThan(2_500);
    expect(await run.exited).toBe(EXIT_LOST);
    expect(await scene.isFree()).toBe(true);
  });

  test('case A13: a wrapper that is cut off ends CMD before its lock can be granted again', async (context) => {
    const scene = sceneOf(context);
    const gateway = await scene.gateway();
    const first = scene.run(STUBBORN, { url: gateway.url });
    await begun(scene.file, 1);
    const second = scene.run();
    await scene.waiting();
    gateway.cut();
    expect(await first.exited).toBe(EXIT_LOST);
    await nextBegun(scene.file, FREE_MS_MAX);
    second.kill('SIGTERM');
    await second.exited;
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });
});

describe.concurrent('ends', () => {
  test.for([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)(
    'case K09: %s goes on to CMD, and its lock is free at once',
    async ([signal, code], context) => {
      const scene = sceneOf(context, 'calm');
      const run = scene.run();
      await begun(scene.file, 1);
      run.kill(signal);
      expect(await run.exited).toBe(code);
      expect(await scene.isFree()).toBe(true);
    },
  );

  test('case J04: the lock is given back only when CMD has ended, however long its ending takes', async (context) => {
    const scene = sceneOf(context, 'calm');
    const first = scene.run(`trap 'sleep 2; echo "end $LEASEHOLD_TOKEN" >>"$0"; exit 5' TERM; ${WORK}`);
    await begun(scene.file, 1);
    const second = scene.run('echo "begin $LEASEHOLD_TOKEN" >>"$0"');
    await scene.waiting();
    first.kill('SIGTERM');
    expect(await first.exited).toBe(5);
    expect(await second.exited).toBe(0);
    expect(tokensInTurn(scene.file)).toHaveLength(2);
    expect(linesOf(scene.file).at(-2)).toMatch(/^end /);
  });

  test('what CMD leaves behind in its process group is gone before the lock is', async (context) => {
    const scene = sceneOf(context, 'calm');
    const first = scene.run(`trap '' TERM HUP; (${WORK}) & sleep 0.5`);
    await begun(scene.file, 1);
    const second = scene.run('echo "begin $LEASEHOLD_TOKEN" >>"$0"; sleep 1');
    expect(await first.exited).toBe(0);
    expect(await second.exited).toBe(0);
    expect(tokensInTurn(scene.file)).toHaveLength(2);
  });

  test('a signal ends the wait, and leaves no waiter behind', async (context) => {
    const scene = sceneOf(context, 'calm');
    await scene.api.lock(scene.name, { client: 'first', ttl_s: 30 });
    const run = scene.run();
    await scene.waiting();
    run.kill('SIGINT');
    expect(await run.exited).toBe(130);
    expect((await scene.api.get(scene.name)).waiters).toBe(0);
  });

  test('CMD has standard input, output and the grant in its environment; its code and its signals come back', async (context) => {
    const scene = sceneOf(context, 'calm');
    const script = 'cat; echo "$LEASEHOLD_NAME $LEASEHOLD_URL"; test -n "$LEASEHOLD_SESSION_ID"; exit 9';
    const { url } = shared.process;
    const talks = new RunProcess({ url, name: scene.fullName, script, file: scene.file, input: 'hello\n' });
    expect(await talks.exited).toBe(9);
    expect(talks.stdout).toBe(`hello\n${scene.fullName} ${url}\n`);
    expect(talks.stderr).toBe('');
    expect(await scene.run('kill -KILL $$').exited).toBe(137);
    const missing = await leasehold(['run', scene.fullName, '--url', url, '--', 'no-such-program']);
    expect(missing.code).toBe(127);
  });
});

describe.concurrent('its own exit codes', () => {
  test('120, or 0 with --skip-if-held: somebody else holds it, and is named', async (context) => {
    const scene = sceneOf(context, 'calm');
    await scene.api.lock(scene.name, { client: 'nightly', ttl_s: 30, purpose: 'pay' });
    const impatient = scene.run(WORK, { args: ['--no-wait'] });
    const patient = scene.run(WORK, { args: ['--wait', '300ms'] });
    const skipped = scene.run(WORK, { args: ['--skip-if-held'] });
    expect(await impatient.exited).toBe(120);
    expect(impatient.stderr).toMatch(/^leasehold: HELD: .* by nightly \(pay\) for \d+ s under token \d+\n$/);
    expect(await patient.exited).toBe(120);
    expect(await skipped.exited).toBe(0);
    expect(skipped.stderr).toBe('');
    expect(linesOf(scene.file)).toEqual([]);
  });

  test('121 the queue is full, 123 nobody is there, 125 wrong usage', async (context) => {
    const scene = sceneOf(context, 'narrow');
    const session = await scene.api.open();
    await scene.api.lock(scene.name, { client: 'first', ttl_s: 30 });
    scene.api.acquire(scene.name, { session_id: session, wait_ms: 60_000 }).catch(() => undefined);
    await scene.waiting();
    const wrong = [['--wait', 'soon'], ['--ttl', '1h'], ['--nonsense']];
    const codes = await Promise.all([
      scene.run(WORK, { args: [] }).exited,
      scene.run(WORK, { url: 'http://127.0.0.1:1', args: ['--no-wait'] }).exited,
      ...wrong.map((args) => scene.run(WORK, { args }).exited),
      scene.run(WORK, { url: 'ftp://127.0.0.1' }).exited,
    ]);
    expect(codes).toEqual([121, 123, ...wrong.map(() => 125), 125]);
    expect((await leasehold(['run', 'no-slash', '--', 'true'])).code).toBe(125);
    expect(linesOf(scene.file)).toEqual([]);
  });

  test('125 says what to write instead', async (context) => {
    const scene = sceneOf(context, 'narrow');
    const tooLong = scene.run(WORK, { args: ['--wait', '2h'] });
    expect(await tooLong.exited).toBe(125);
    expect(tooLong.stderr).toMatch(/^leasehold: INVALID: .* \(wait_ms, from --wait; limit: 1h\)\n$/);
    const { code, stderr } = await leasehold(['run', 'jobs/x']);
    expect(code).toBe(125);
    expect(stderr).toBe(
      'error: no command to run; it comes behind --: leasehold run jobs/x -- CMD\n(run with --help for usage)\n',
    );
  });
});

test('--shared and --permits: CMDs that may run together do', async () => {
  const text = shared.workspace.textOf({ name: 'modes', lease: CALM });
  const modes =
    'spec:\n  modes: [Exclusive, Shared, Semaphore]\n  semaphores: [{pattern: pool, permits: 3}]\n';
  shared.workspace.writeText('modes.yaml', text.replace('spec:\n', modes));
  await shared.process.until(() => shared.process.stdout.includes('added [modes]'), 20_000);
  const { url } = shared.process;
  const both = async (name: string, args: readonly string[]): Promise<void> => {
    const file = join(shared.workspace.root, name);
    // Each ends only when it has seen the other one.
    const script = 'echo "begin $LEASEHOLD_TOKEN" >>"$0"; until [ "$(wc -l <"$0")" = 2 ]; do sleep 0.1; done';
    const runs = [1, 2].map(() => new RunProcess({ url, name: `modes/${name}`, args, script, file }));
    expect(await Promise.all(runs.map(({ exited }) => exited))).toEqual([0, 0]);
  };
  await Promise.all([both('table', ['--shared']), both('pool', ['--permits', '1'])]);
  const wrong = await leasehold([
    'run',
    'modes/pool',
    '--shared',
    '--permits',
    '1',
    '--url',
    url,
    '--',
    'true',
  ]);
  expect(wrong.code).toBe(125);
  const tooMany = await leasehold(['run', 'modes/pool', '--permits', '4', '--url', url, '--', 'true']);
  expect(tooMany.code).toBe(125);
});
