/** acquire, renew, release, ls, describe, break, unquarantine, tail, completion: as people and scripts call them, on a real server. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { ADMIN_SOCKET } from '../../src/server/grpc/socket.ts';
import { type CliResult, leasehold } from '../support/cli.ts';
import { eventually, type LockApi } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';
import { shareDev } from '../support/dev/shared-dev.ts';

vi.setConfig({ testTimeout: 90_000 });

const shared = shareDev({ name: 'jobs', lease: { ttl: '30s', lockDelay: '20s' } }, { name: 'other' });

/** On the lock API. */
function cli(...args: readonly string[]): Promise<CliResult> {
  return leasehold([...args, '--url', shared.process.url]);
}

/** On the admin socket. */
function admin(...args: readonly string[]): Promise<CliResult> {
  return leasehold([...args, '-d', shared.workspace.data]);
}

function json(result: CliResult): Record<string, unknown> {
  expect(result.stderr).toBe('');
  return JSON.parse(result.stdout) as Record<string, unknown>;
}

async function quarantine(name: string): Promise<void> {
  const client = new AdminClient(join(shared.workspace.data, ADMIN_SOCKET));
  await client.quarantine({ namespace: 'jobs', name, reason: 'test' });
  client.close();
}

function waitFor(api: LockApi, name: string, session: string): void {
  // The connection ends with the test.
  api.acquire(name, { session_id: session, wait_ms: 60_000 }).catch(() => undefined);
}

test('acquire, renew, release: one grant by hand', async () => {
  const acquired = json(
    await cli('acquire', 'jobs/hand', '--ttl', '20s', '--purpose', 'repair', '-o', 'json'),
  );
  expect(acquired).toMatchObject({ acquired: true, lease_ttl_ms: 20_000 });
  const grant = ['--session', String(acquired.session_id), '--token', String(acquired.token)];
  const [renewed, refused] = await Promise.all([
    cli('renew', 'jobs/hand', ...grant),
    cli('acquire', 'jobs/hand', '-o', 'json'),
  ]);
  expect(renewed).toMatchObject({ code: 0, stderr: '' });
  expect(renewed.stdout).toMatch(
    new RegExp(
      `^name +jobs/hand\ntoken +${acquired.token}\nsession +${acquired.session_id}\nttl +20s\ndeadline in +\\d+\\.\\d s\n$`,
    ),
  );
  expect(refused.code).toBe(120);
  expect(JSON.parse(refused.stdout)).toMatchObject({
    acquired: false,
    code: 'HELD',
    holder: { purpose: 'repair' },
  });
  expect(refused.stderr).toMatch(/^HELD: .* by \S+ \(repair\) for \d+ s under token \d+\n$/);
  const released = await cli('release', 'jobs/hand', ...grant);
  expect(released).toMatchObject({ code: 0, stdout: 'name       jobs/hand\nreleased   now\n' });
  const again = await cli('renew', 'jobs/hand', ...grant);
  expect(again).toMatchObject({ code: 122, stdout: '' });
});

test('ls and describe: who holds what for what, and who waits, in their order', async () => {
  const api = shared.api();
  const sessions = [await api.open({ client: 'second' }), await api.open({ client: 'third' })];
  const held = await api.lock('odd name', {
    client: 'first',
    owner: 'pay\u001b[31m',
    ttl_s: 30,
    purpose: 'x y',
  });
  for (const [i, session] of sessions.entries()) {
    waitFor(api, held.name, session);
    await eventually(async () => (await api.get(held.name)).waiters === i + 1);
  }
  const [list, all, shown, whole] = await Promise.all([
    cli('ls', 'jobs/odd'),
    cli('ls', 'jobs', '-o', 'json'),
    cli('describe', 'jobs/odd name'),
    cli('describe', 'jobs/odd name', '-o', 'json'),
  ]);
  const [head, row, ...more] = list.stdout.trimEnd().split('\n');
  expect(head).toMatch(/^NAME +STATE +HOLDER +TOKEN +HELD FOR +WAITING +PURPOSE$/);
  expect(row).toMatch(
    new RegExp(`^"jobs/odd name" +held +"pay\\\\u\\{1b\\}\\[31m" +${held.token} +\\d+ s +2 +"x y"$`),
  );
  expect(more).toEqual([]);
  expect(JSON.parse(all.stdout)).toContainEqual(
    expect.objectContaining({ name: 'jobs/odd name', waiters: 2 }),
  );
  expect(shown.stdout).toMatch(/^holder +"pay/m);
  expect(shown.stdout).toMatch(/^ +1 +second +exclusive +\d+ s\n +2 +third +exclusive +\d+ s$/m);
  expect(json(whole)).toMatchObject({
    token: held.token,
    queue: [{ client: 'second' }, { client: 'third' }],
  });
  for (const session of sessions) await api.close(session);
  await api.release(held);
});

test('what is not there, or not meant, is said', async () => {
  const [nowhere, wrongName, nobody, noGrant] = await Promise.all([
    cli('describe', 'nowhere/a'),
    cli('describe', 'no-slash'),
    leasehold(['ls', '--url', 'http://127.0.0.1:1']),
    cli('release', 'jobs/a'),
  ]);
  expect(nowhere).toMatchObject({ code: 125, stdout: '' });
  expect(nowhere.stderr).toMatch(/^NAMESPACE_NOT_FOUND: /);
  expect(wrongName.code).toBe(125);
  expect(wrongName.stderr).toContain('a lock is named <alias>/<name>');
  expect(nobody.code).toBe(123);
  expect(nobody.stderr).toContain('cannot be reached');
  expect(noGrant.code).toBe(125);
});

describe('an administrator', () => {
  test('break: refused if the holder changed, who holds is shown; otherwise the grant ends, and its name is delayed', async () => {
    const api = shared.api();
    const held = await api.lock('broken', { client: 'hangs', ttl_s: 30, purpose: 'pay' });
    const stale = await admin('break', 'jobs/broken', '--token', String(held.token - 1), '--reason', 'x');
    expect(stale).toMatchObject({ code: 122, stdout: '' });
    expect(stale.stderr).toMatch(
      new RegExp(
        `^STALE_TOKEN: nothing was done: .* hangs \\(pay\\) holds it for \\d+ s under token ${held.token}\n$`,
      ),
    );
    expect(await api.tokenOf('broken')).toBe(held.token);
    const flags = ['--token', String(held.token), '--reason', 'it hangs', '--by', 'alice'];
    expect((await admin('break', 'jobs/broken', ...flags)).code).toBe(0);
    const { stdout } = await cli('describe', 'jobs/broken');
    expect(stdout).toMatch(/^state +revoking$/m);
    expect(stdout).toMatch(/^held for +\d+ s, being taken away$/m);
    await api.close(held.session);
    expect((await cli('describe', 'jobs/broken')).stdout).toMatch(
      /^state +delayed\nfree in +\d+ s \(lock-delay\)$/m,
    );
    expect((await admin('break', 'jobs/broken', '--token', '7')).code).toBe(125);
  });

  test('break --now: the grant is over at once, and the next one has the lock; so it does not say that it is free', async () => {
    const api = shared.api();
    const { token } = await api.lock('broken-now', { client: 'gone', ttl_s: 30 });
    const waiting = api.lock('broken-now', { client: 'next', ttl_s: 30, wait_ms: 20_000 });
    await api.waiting('broken-now', 1);
    const broken = await admin(
      'break',
      'jobs/broken-now',
      '--token',
      `${token}`,
      '--now',
      '--reason',
      'gone',
    );
    expect(broken).toMatchObject({
      code: 0,
      stdout: `jobs/broken-now: the grant with token ${token} is over\n`,
    });
    const next = await waiting;
    expect(await api.tokenOf('broken-now')).toBe(next.token);
    await api.close(next.session);
  });

  test('unquarantine: back in service, once', async () => {
    await quarantine('faulty');
    expect((await cli('ls', 'jobs/faulty')).stdout).toMatch(/^jobs\/faulty +quarantined /m);
    expect(await admin('unquarantine', 'jobs/faulty')).toMatchObject({
      code: 0,
      stdout: 'jobs/faulty is back in service\n',
    });
    expect(await admin('unquarantine', 'jobs/faulty')).toMatchObject({
      code: 125,
      stderr: expect.stringMatching(
        /^nothing was done: jobs\/faulty is not quarantined; "leasehold ls jobs\/" /,
      ),
    });
    const told = await admin('unquarantine', 'jobs/faulty', '-o', 'json');
    expect(JSON.parse(told.stdout)).toMatchObject({ code: 'REFUSED' });
  });

  test('tail: events of the names asked for, as they come, or from an index on', async () => {
    const api = shared.api();
    const words = ['src/cli/main.ts', 'tail', 'jobs/tail-', '-d', shared.workspace.data];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    await eventually(() => printed.includes('EVENT'), 40_000);
    // It reads what is committed after it has begun; that takes it a moment longer.
    await eventually(async () => {
      for (const name of ['untold', 'tail-a'])
        await api.release(await api.lock(name, { client: 'x', ttl_s: 30 }));
      return printed.includes('released name=tail-a');
    }, 40_000);
    expect(printed).toMatch(/granted name=tail-a .* token=\d+ /);
    expect(printed).not.toContain('untold');
    expect(printed).not.toMatch(/session(Opened|End)/);
    const other = spawn(process.execPath, [
      'src/cli/main.ts',
      'tail',
      'jobs/tail-',
      '--from',
      '1',
      '-o',
      'json',
      '-d',
      shared.workspace.data,
    ]);
    onTestFinished(() => void other.kill('SIGKILL'));
    let lines = '';
    other.stdout.setEncoding('utf8').on('data', (text: string) => {
      lines += text;
    });
    await eventually(() => lines.includes('"released"'), 40_000);
    const first = JSON.parse(lines.split('\n')[0] ?? '') as Record<string, unknown>;
    expect(first).toMatchObject({ namespace: 'jobs', epoch: 1, event: { type: 'granted', name: 'tail-a' } });
    expect(Object.keys(first)).toEqual(['namespace', 'index', 'epoch', 'at', 'wallMs', 'event']);
  });

  test('tail without a prefix: all namespaces, each line with its own', async () => {
    const words = ['src/cli/main.ts', 'tail', '-d', shared.workspace.data];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    await eventually(() => printed.includes('EVENT'), 40_000);
    expect(printed).toMatch(/^NAMESPACE +INDEX +EPOCH /);
    const apis = [shared.api(), shared.api('other')];
    await eventually(async () => {
      for (const api of apis) await api.release(await api.lock('in-both', { client: 'x', ttl_s: 30 }));
      return ['jobs', 'other'].every((alias) =>
        new RegExp(`^${alias} +\\d+ .* released name=in-both`, 'm').test(printed),
      );
    }, 40_000);
    const fromOne = await admin('tail', '--from', '1');
    expect(fromOne).toMatchObject({ code: 125, stdout: '' });
    expect(fromOne.stderr).toBe(
      '--from is an index of one log: name one of those served here: jobs, other\n',
    );
  });

  test('tail without a prefix ends, and says why, when one of them is served no more', async (context) => {
    const own = new OwnDev(context);
    const workspace = own.workspace({ name: 'stays' }, { name: 'goes' });
    await own.start(workspace);
    let isRemoved = false;
    const tailed = await leasehold(['tail', '-d', workspace.data], '', () => {
      if (!isRemoved) workspace.removeManifest('goes');
      isRemoved = true;
    });
    expect(tailed.stdout).toMatch(/^NAMESPACE /);
    expect(tailed.stderr).toBe('goes is not served any more\n');
    expect(tailed.code).toBe(123);
  });

  test('history check of a file that is something else says where, and what it reads', async () => {
    const checked = await leasehold(['history', 'check', 'package.json']);
    expect(checked.code).toBe(125);
    expect(checked.stderr).toMatch(/^package\.json: line 1: not JSON .*"leasehold history read -o json"/);
    const foreign = await leasehold(['history', 'check', '-'], '{"level":"info","msg":"x"}\n');
    expect(foreign.stderr).toMatch(/^-: line 1: lineage: it is missing; it is a text\. A history is what /);
  });

  test('history check of what is no file says so', async () => {
    const [missing, folder] = await Promise.all([
      leasehold(['history', 'check', 'no-such-file']),
      leasehold(['history', 'check', shared.workspace.data]),
    ]);
    expect(missing).toMatchObject({
      code: 125,
      stderr: 'no-such-file cannot be read: there is no such file\n',
    });
    expect(folder).toMatchObject({
      code: 125,
      stderr: `${shared.workspace.data} cannot be read: it is a folder\n`,
    });
  });
});

describe('completion', () => {
  test('bash completes sub-commands, their sub-commands and options', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-completion-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { stdout } = await leasehold(['completion', 'bash']);
    writeFileSync(join(folder, 'complete.bash'), stdout);
    const complete = (...words: readonly string[]): string[] => {
      const script = `source "$0/complete.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leasehold; echo "\${COMPREPLY[@]}"`;
      return execFileSync('bash', ['-c', script, folder, ...words], { encoding: 'utf8' })
        .trim()
        .split(' ');
    };
    expect(complete('leasehold', 'un')).toEqual(['unquarantine']);
    expect(complete('leasehold', 'history', '')).toEqual(['read', 'check', '--help']);
    expect(complete('leasehold', 'run', 'jobs/a', '--sk')).toEqual(['--skip-if-held']);
    expect(complete('leasehold', 'completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
  });

  test('zsh and fish scripts name every command', async () => {
    const [zsh, fish] = await Promise.all([
      leasehold(['completion', 'zsh']),
      leasehold(['completion', 'fish']),
    ]);
    for (const verb of ['run', 'acquire', 'describe', 'break', 'tail', 'dev']) {
      expect(zsh.stdout).toContain(`'${verb}') compadd -- --`);
      expect(fish.stdout).toContain(`-f -a ${verb} -d '`);
    }
    expect((await leasehold(['completion', 'tcsh'])).code).toBe(125);
  });
});
