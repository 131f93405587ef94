/** `leasehold log dump`, `history` and `inspect` as a person or a script runs them. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Entry, HistoryEntry } from '../../src/api/entry.ts';
import { openEmbeddedLog } from '../../src/log/embedded/embedded-log.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { startAdminServer } from '../../src/server/grpc/admin-server.ts';
import { ADMIN_SOCKET } from '../../src/server/grpc/socket.ts';
import { Replica } from '../../src/server/member/replica.ts';
import { collect } from '../support/admin-services.ts';
import { leasehold } from '../support/cli.ts';
import { acquireCommand, namespaceConfig, openCommand } from '../support/core.ts';
import { eventually } from '../support/dev/lock-api.ts';

const EXIT_WRONG = 1;
const EXIT_USAGE = 125;
const TEST_MS_MAX = 60_000;

const data = mkdtempSync(join(tmpdir(), 'leasehold-admin-cli-'));
const runtime = createSystemRuntime({ logLevel: 'error' });

async function startReplica(alias: string, snapshotDueBytes?: number): Promise<Replica> {
  return Replica.start({
    runtime,
    log: await openEmbeddedLog({ directory: join(data, `test.${alias}`), ...runtime }),
    serverId: 'test',
    config: namespaceConfig({ namespace: 'test', name: alias }),
    onStopped: (reason) => expect.unreachable(`stopped: ${reason.kind}`),
    ...(snapshotDueBytes === undefined ? {} : { snapshotDueBytes }),
  });
}

function linesOf<T>(stdout: string): T[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);
}

function ndjson(entries: readonly object[]): string {
  return entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** `whole` has six entries, and nothing that could expire; `trimmed` does not begin with entry 1 any more. Both are being written. */
let whole: Replica;
let trimmed: Replica;
let closeAdmin: () => Promise<void>;

beforeAll(async () => {
  whole = await startReplica('whole');
  trimmed = await startReplica('trimmed', 20_000);
  await whole.submit(openCommand({ client: 'nightly job' }));
  const name = 'odd\u001b[2Jname';
  const granted = await whole.submit(acquireCommand({ session: 1, key: 'k1', name, purpose: 'pay' }));
  if (granted.type !== 'granted') throw new Error(granted.type);
  await whole.submit({
    type: 'release',
    session: 1,
    attach: 1,
    name,
    token: granted.token,
    key: '',
    acks: [],
  });
  await whole.submit({ type: 'closeSession', session: 1, attach: 1, clean: true });
  await eventually(async () => {
    for (let i = 0; i < 50; i++)
      await trimmed.submit({ type: 'reportStale', session: 0, name: 'n', token: 1, resource: 'r' });
    return trimmed
      .history(1)
      [Symbol.asyncIterator]()
      .next()
      .then(
        () => false,
        () => true,
      );
  }, TEST_MS_MAX);
  const served = [
    { alias: 'whole', replica: whole },
    { alias: 'trimmed', replica: trimmed },
  ];
  const admin = await startAdminServer({
    socketPath: join(data, ADMIN_SOCKET),
    served: () => served,
    timers: runtime.timers,
  });
  closeAdmin = () => admin.close();
}, TEST_MS_MAX);

afterAll(async () => {
  await closeAdmin();
  await whole.stop();
  await trimmed.stop();
  rmSync(data, { recursive: true });
});

describe('log dump', () => {
  test(
    'a line for each command, in columns, with nothing in it that could move the cursor',
    async () => {
      const { code, stdout, stderr } = await leasehold(['log', 'dump', data, '-n', 'whole']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const lines = stdout.trimEnd().split('\n');
      const at = lines[0]?.indexOf('COMMAND') ?? -1;
      expect(lines[0]).toMatch(/^ +INDEX +EPOCH +GROUP TIME +WALL TIME +COMMAND$/);
      expect(lines.map((line) => line.slice(at).split(' ')[0])).toEqual([
        'COMMAND',
        'takeOver',
        'raiseBehaviour',
        'configure',
        'openSession',
        'acquire',
        'release',
        'closeSession',
      ]);
      expect(lines[4]).toMatch(/^ +4 +1 +\d+\.\d{3} s +20\d\d-.*Z +openSession client="nightly job" /);
      expect(lines[5]).toContain('name="odd\\u{1b}[2Jname"');
      expect(lines[5]).toContain('purpose=pay');
      expect(stdout).not.toContain('\u001b');
    },
    TEST_MS_MAX,
  );

  test(
    'from an index on, as JSON: the entries as they are stored',
    async () => {
      const { code, stdout } = await leasehold([
        'log',
        'dump',
        join(data, 'test.whole'),
        '--from',
        '5',
        '-o',
        'json',
      ]);
      expect(code).toBe(0);
      const entries = linesOf<Entry & { hash: string }>(stdout);
      expect(entries.map(({ index }) => index)).toEqual([5, 6, 7]);
      expect(entries[1]?.previous).toBe(entries[0]?.hash);
      expect(entries[0]?.commands).toMatchObject([{ type: 'acquire', key: 'k1', mode: 'exclusive' }]);
    },
    TEST_MS_MAX,
  );

  test(
    'the events: what the commands caused',
    async () => {
      const { stdout } = await leasehold(['log', 'dump', data, '-n', 'whole', '--events']);
      const events = stdout
        .trimEnd()
        .split('\n')
        .map((line) => /Z {2}(\w+)/.exec(line)?.[1]);
      expect(events.slice(1)).toEqual([
        'tookOver',
        'configured',
        'sessionOpened',
        'granted',
        'released',
        'sessionEnding',
        'sessionEnded',
      ]);
    },
    TEST_MS_MAX,
  );

  test(
    'a trimmed log: begins where it begins and says so; what is gone cannot be asked for',
    async () => {
      const dumped = await leasehold(['log', 'dump', data, '-n', 'trimmed', '--events', '-o', 'json']);
      expect(dumped.code).toBe(0);
      const first = linesOf<HistoryEntry>(dumped.stdout)[0]?.index ?? 0;
      expect(first).toBeGreaterThan(1);
      expect(dumped.stderr).toBe(`entries up to ${first - 1} were trimmed; this starts at ${first}\n`);
      const gone = await leasehold(['log', 'dump', data, '-n', 'trimmed', '--from', '1']);
      expect(gone.code).toBe(EXIT_USAGE);
      expect(gone.stderr).toContain(`read from ${first} on`);
    },
    TEST_MS_MAX,
  );

  test(
    'a reader that has seen enough ends it quietly',
    async () => {
      const command = `"$0" src/cli/main.ts log dump "$1" -n trimmed -o json | head -n 1; echo "\${PIPESTATUS[0]}"`;
      const child = spawn('bash', ['-c', command, process.execPath, data], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (text) => (stdout += text));
      child.stderr.on('data', (text) => (stderr += text));
      await new Promise((done) => child.once('close', done));
      expect(stdout.trimEnd().split('\n').at(-1)).toBe('0');
      expect(stderr).toMatch(/^entries up to \d+ were trimmed.*\n$/);
    },
    TEST_MS_MAX,
  );

  test(
    'wrong usage ends with 125 and says what would be right',
    async () => {
      const ambiguous = await leasehold(['log', 'dump', data]);
      expect(ambiguous).toMatchObject({ code: EXIT_USAGE, stdout: '' });
      expect(ambiguous.stderr).toContain('choose with --namespace: trimmed, whole');
      expect((await leasehold(['log', 'dump', data, '--from', '0'])).code).toBe(EXIT_USAGE);
      expect((await leasehold(['log', 'dump', '--help'])).code).toBe(0);
    },
    TEST_MS_MAX,
  );
});

describe('history', () => {
  test(
    'read: whole for the checker; one of several namespaces must be named',
    async () => {
      const read = await leasehold(['history', 'read', '-d', data, '-n', 'whole']);
      expect(read).toMatchObject({ code: 0, stderr: '' });
      const checked = await leasehold(['history', 'check', '-'], read.stdout);
      expect(checked).toMatchObject({ code: 0, stderr: '' });
      expect(checked.stdout).toMatch(/^7 entries, 7 events, 1 session, 1 grant, .*every promise was kept\n$/);
      const unnamed = await leasehold(['history', 'read', '-d', data]);
      expect(unnamed).toMatchObject({ code: EXIT_USAGE, stdout: '' });
      expect(unnamed.stderr).toContain('served here: trimmed, whole');
      const twice = await leasehold(['history', 'read', 'whole', '-d', data, '-n', 'trimmed']);
      expect(twice).toMatchObject({ code: EXIT_USAGE, stdout: '' });
    },
    TEST_MS_MAX,
  );

  test(
    'read beyond the end: nothing is printed, and standard error says where the end is',
    async () => {
      const beyond = await leasehold(['history', 'read', 'whole', '-d', data, '--from', '1000']);
      expect(beyond).toMatchObject({ code: 0, stdout: '' });
      expect(beyond.stderr).toMatch(
        /^nothing to read from entry 1000 on: the newest one is \d+; --follow waits/,
      );
      const last = /newest one is (\d+)/.exec(beyond.stderr)?.[1] as string;
      const read = await leasehold(['history', 'read', 'whole', '-d', data, '--from', last]);
      expect(read.stderr).toBe('');
      expect(JSON.parse(read.stdout)).toMatchObject({ index: Number(last) });
    },
    TEST_MS_MAX,
  );

  test(
    'check: a broken promise is named, with the events that show it, and ends with 1',
    async () => {
      const entries = await collect(whole.history(1));
      const grant = entries.find(({ events }) => events[0]?.type === 'granted') as HistoryEntry;
      const again = { ...grant, index: 6, events: [{ ...grant.events[0], key: 'k2' }] };
      const file = join(data, 'broken.ndjson');
      writeFileSync(file, ndjson([...entries.slice(0, 5), again]));
      const checked = await leasehold(['history', 'check', file]);
      expect(checked.code).toBe(EXIT_WRONG);
      expect(checked.stdout).toMatch(/^exclusion \(.*rule C2\): /m);
      expect(checked.stdout).toMatch(/^ {2}6 {2}.* granted name=/m);
      expect(checked.stdout).toMatch(/^6 entries, .*: \d+ violations?$/m);
    },
    TEST_MS_MAX,
  );

  test(
    'check: of a part what depends on the rest is not judged, and said so; what is no history is refused',
    async () => {
      const late = await leasehold(['history', 'check', '-'], ndjson(await collect(whole.history(3))));
      expect(late.code).toBe(0);
      expect(late.stdout).toMatch(/^entries 3 to 7 .*: not judged, .*: .*durability.*liveness/);
      expect(late.stdout).toMatch(/^5 entries, .*: nothing that can be judged was broken$/m);
      const foreign = await leasehold(['history', 'check', '-'], '{"index":1}\n');
      expect(foreign.code).toBe(EXIT_USAGE);
      expect(foreign.stderr).toContain('line 1:');
      expect((await leasehold(['history', 'check', join(data, 'nowhere')])).code).toBe(EXIT_USAGE);
    },
    TEST_MS_MAX,
  );
});

test(
  'inspect: a table for people, JSON for programs, and the names that are served',
  async () => {
    const { code, stdout, stderr } = await leasehold(['inspect', '-d', data]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [head, first, second] = stdout.split('\n');
    expect(head).toMatch(/^ALIAS +SERVER +ROLE +LOCKNAMESPACE +CLASS +TTL +SESSIONS +HELD/);
    expect(first).toMatch(/^trimmed +test +leading +test\/trimmed +Efficiency +15 s +0 +0 /);
    expect(second).toMatch(/^whole +test +leading +test\/whole +Efficiency +15 s +0 +0 /);
    const json = await leasehold(['inspect', 'whole', '-d', data, '-o', 'json']);
    expect(JSON.parse(json.stdout)).toMatchObject([
      { namespace: 'whole', position: { epoch: 1, index: 7 }, config: { name: 'whole', consumers: null } },
    ]);
  },
  TEST_MS_MAX,
);
