/** Groups H and I of the public lock bugs on a real process: names of every kind over a restart, and what many names leave. */
import { test } from 'vitest';
import { eventually } from '../support/dev/lock-api.ts';
import { OwnDev } from '../support/dev/own-dev.ts';
import { Random } from '../support/random.ts';

const NAME_BYTES_MAX = 512;
const OWNER_BYTES_MAX = 256;
const MANY_NAMES = 5_000;
const AT_ONCE = 50;
/** What prom-client, V8 and SQLite may take while they grow into the load. */
const LEFT_OVER_BYTES_MAX = 48 * 1024 * 1024;
const TIMEOUT_MS = 90_000;

const NAMES: readonly string[] = [
  ...['a', 'a/b', 'a/b/c', '/a', 'a/', '//', '.', '..', '../a', 'a/../b', '~', '-', '--help', '*', 'a*', '?'],
  ...[' ', ' a', 'a ', '\ta', 'a\n', '\r\n', 'a\u0000', '\u0000', '\u0001', '\u007f', '\u0085', '\u2028'],
  ...['%', '%2F', '%252F', 'a%2Fb', '%00', 'a+b', 'a b', '#', 'a#b', 'a?b=c', 'a&b', ';', ':', 'a:release'],
  ...['"', "'", '\\', '\\n', '{"a":1}', '[]', '<script>', '$HOME', '`id`', 'DROP TABLE locks', "' OR 1=1 --"],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'null',
    'undefined',
    'NaN',
    '0',
    'true',
    'held',
    'acquire',
    'CON',
  ],
  ...[
    '\u00e9',
    'e\u0301',
    '\u00df',
    '\u1e9e',
    'SS',
    '\u0130',
    'i\u0307',
    '\u03a9',
    '\u2126',
    '\ufb01',
    '日本',
    '🔒',
    '👩‍👩‍👧',
    '\uFEFF',
    '\u200B',
    '\u202E',
    '\uFFFD',
  ],
  'x'.repeat(NAME_BYTES_MAX),
  '\u00e9'.repeat(NAME_BYTES_MAX / 2),
  '🔒'.repeat(NAME_BYTES_MAX / 4),
];

/** Any texts, of any planes, at every length. */
function randomNames(count: number): string[] {
  const random = new Random(20_260_101);
  const points = [0x20, 0x7f, 0xff, 0x7ff, 0xffff, 0x10ffff];
  return Array.from({ length: count }, (_, i) => {
    let name = `r${i}`;
    for (let left = random.int(60); left > 0; left--) {
      const text = String.fromCodePoint(random.int(random.pick(points)));
      if (text.isWellFormed()) name += text;
    }
    return name;
  });
}

test.concurrent('cases H02, H04, H05, H07, H10, H12, H14: every name is a lock of its own, also after kill -9', {
  timeout: TIMEOUT_MS,
}, async ({ expect, onTestFinished }) => {
  const own = new OwnDev({ onTestFinished });
  const names = [...NAMES, ...randomNames(100)];
  expect(new Set(names).size).toBe(names.length);
  const workspace = own.workspace({ name: 'names' });
  const first = await own.start(workspace);
  let api = own.api(first, 'names');
  const session = await api.open({ ttl_s: 60 });
  const held = await Promise.all(
    names.map((name) =>
      api.lock(name, { session_id: session, owner: [...name].slice(0, 60).join(''), purpose: name }),
    ),
  );
  expect(new Set(held.map(({ token }) => token)).size).toBe(names.length);
  await first.kill();

  const second = await own.start(workspace);
  api = own.api(second, 'names');
  const listed = new Set(await api.names());
  await api.keepalive(session);
  for (const grant of held) {
    const { name, token } = grant;
    expect(await api.get(name), name).toMatchObject({ name: `names/${name}`, token, purpose: name });
    expect(listed.has(`names/${name}`), name).toBe(true);
    expect((await api.renew(grant)).body, name).toMatchObject({ token });
    expect(await api.isHeld(grant), name).toBe(true);
    expect((await api.release(grant)).body, name).toEqual({ released: true });
    expect(await api.tokenOf(name), name).toBeNull();
  }
  expect(await api.names()).toEqual([]);
  await second.stop();
  expect(first.stderr + second.stderr).toBe('');
});

test.concurrent('cases H07, H09: at the limit in bytes it works and is shown whole; one more is refused before queueing', async ({
  expect,
  onTestFinished,
}) => {
  const own = new OwnDev({ onTestFinished });
  const dev = await own.start(own.workspace({ name: 'limits' }));
  const api = own.api(dev, 'limits');
  const session = await api.open();
  for (const char of ['x', 'é', '日', '🔒']) {
    const size = Buffer.byteLength(char);
    const name = char.repeat(Math.floor(NAME_BYTES_MAX / size));
    const owner = char.repeat(Math.floor(OWNER_BYTES_MAX / size));
    const grant = await api.lock(name, { session_id: session, owner });
    expect(await api.get(name)).toMatchObject({ name: `limits/${name}`, owner });
    const over = [
      await api.acquire(`${name}${char}`, { session_id: session, wait_ms: 60_000 }),
      await api.acquire(name, { session_id: session, wait_ms: 60_000, owner: `${owner}${char}` }),
    ];
    expect(over.map(({ status, body }) => [status, body.code, body.field, body.limit])).toEqual([
      [400, 'INVALID', 'name', NAME_BYTES_MAX],
      [400, 'INVALID', 'owner', OWNER_BYTES_MAX],
    ]);
    expect((await api.get(name)).waiters).toBe(0);
    await api.release(grant);
  }
  expect(await dev.stop()).toEqual({ code: 0, signal: null });
});

test.concurrent('cases I01, I02, I04: thousands of names over HTTP, taken, waited for, looked at and given back, leave nothing', {
  timeout: TIMEOUT_MS,
}, async ({ expect, onTestFinished }) => {
  const own = new OwnDev({ onTestFinished });
  const dev = await own.start(own.workspace({ name: 'many' }));
  const api = own.api(dev, 'many');
  const sessions = await Promise.all(Array.from({ length: 10 }, () => api.open({ ttl_s: 60 })));
  const use = async (i: number): Promise<void> => {
    const session_id = sessions[i % sessions.length] as string;
    const name = `order-${i}`;
    const grant = await api.lock(name, { session_id });
    if (i % 10 === 0) {
      const waiting = api.acquire(name, { session_id, wait_ms: 10_000 });
      await api.waiting(name, 1);
      await api.release(grant);
      const { body } = await waiting;
      await api.release({ ...grant, token: Number(body.token) });
    } else await api.release(grant);
    if (i % 5 === 0) await api.get(`never-used-${i}`);
  };
  const useAll = async (from: number, to: number): Promise<void> => {
    for (let first = from; first < to; first += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => use(first + i)));
    }
  };
  const figures = async () => ({
    residentBytes: await api.metric('process_resident_memory_bytes'),
    descriptors: await api.metric('process_open_fds'),
  });
  await useAll(0, MANY_NAMES / 2);
  const half = await figures();
  await useAll(MANY_NAMES / 2, MANY_NAMES);
  const whole = await figures();
  expect(whole.residentBytes - half.residentBytes).toBeLessThan(LEFT_OVER_BYTES_MAX);
  expect(half.descriptors).toBeGreaterThan(0);
  expect(whole.descriptors).toBeLessThanOrEqual(half.descriptors + 2);
  expect(await api.names()).toEqual([]);
  for (const gauge of ['held_locks', 'waiters', 'sidecar_grants', 'sidecar_waits']) {
    expect(await api.namespaceMetric(gauge), gauge).toBe(0);
  }
  await Promise.all(sessions.map((session) => api.close(session)));
  await eventually(async () => (await api.namespaceMetric('sessions')) === 0);
  expect(await dev.stop()).toEqual({ code: 0, signal: null });
  expect(dev.stderr).toBe('');
});
