/** Names, texts and lists through the HTTP API, over any `SidecarService`: the cases of group H. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type MakeService, RoutesHarness } from './routes-harness.ts';

export function describeNames(title: string, makeService: MakeService): void {
  describe(`names over ${title}`, () => {
    let on: RoutesHarness;
    beforeAll(async () => {
      on = await RoutesHarness.start(makeService);
    });
    afterAll(() => on.stop());

    test('names keep every character, the same on every route (cases H02, H04, H05, H10)', async () => {
      const session = await on.openSession();
      const names = [
        ...['a', 'a/b', 'a/b/c', 'a//b', '/a', 'a/', '..', '../x', '.', ' a', 'a ', ' ', 'a b', 'a+b', '+'],
        ...[
          'a\u0000b',
          'a\nb',
          'a\r\nb',
          '\t',
          'a:b',
          ':acquire',
          'a:release',
          '%',
          '%2F',
          '%252F',
          'a%00',
          '?x=1',
        ],
        ...[
          '#x',
          'a&b',
          'a;b',
          'a\\b',
          '"',
          "'",
          '<x>',
          '{name}',
          '*',
          '~',
          '\u00e9',
          'e\u0301',
          '\u{1F512}',
          'A',
        ],
        ...[
          '\uFEFF',
          '\u200B',
          '\u202E',
          'constructor',
          '__proto__',
          'acquire',
          'held',
          'null',
          'x'.repeat(512),
        ],
      ];
      expect(new Set(names).size).toBe(names.length);
      const tokens = new Map<string, unknown>();
      for (const rest of names) {
        const { status, body } = await on.acquire(rest, { session_id: session });
        expect({ rest, status }).toEqual({ rest, status: 200 });
        tokens.set(`${on.alias}/${rest}`, body.token);
      }
      for (const rest of names) {
        const name = `${on.alias}/${rest}`;
        const token = tokens.get(name);
        expect((await on.client.get(on.lockPath(rest))).body).toMatchObject({ name, token });
        expect((await on.client.get(on.lockPath(rest, `/held?token=${token}`))).body.held).toBe(true);
      }
      const listed = await on.client.get(`/v1/locks?prefix=${encodeURIComponent(`${on.alias}/`)}&limit=1000`);
      const listedNames = (listed.body.locks as { name: string }[]).map(({ name }) => name);
      expect(listedNames).toEqual(expect.arrayContaining([...tokens.keys()]));
      expect(new Set(listedNames).size).toBe(listedNames.length);
      for (const rest of names) {
        const grant = { session_id: session, token: tokens.get(`${on.alias}/${rest}`) };
        const colonForm = `/v1/locks/${encodeURIComponent(`${on.alias}/${rest}`)}:release`;
        expect({ rest, ...(await on.client.post(colonForm, grant)).body }).toEqual({ rest, released: true });
      }
    });

    test('texts work at their limit in bytes and are shown whole; one byte more is refused before queueing (case H09)', async () => {
      const session = await on.openSession();
      const owner = '\u{1F512}'.repeat(64);
      const purpose = '\u00e9'.repeat(512);
      expect((await on.acquire('limits', { session_id: session, owner, purpose })).status).toBe(200);
      expect((await on.client.get(on.lockPath('limits'))).body).toMatchObject({ owner, purpose, waiters: 0 });
      for (const [field, value, limit] of [
        ['owner', `${owner}x`, 256],
        ['purpose', `${purpose}x`, 1024],
        ['request', 'r'.repeat(65), 64],
      ] as const) {
        const refused = await on.acquire('limits', { session_id: session, wait_ms: 60_000, [field]: value });
        expect(refused).toMatchObject({ status: 400, body: { code: 'INVALID', field, limit } });
      }
      expect((await on.client.get(on.lockPath('limits'))).body.waiters).toBe(0);
    });

    test('a name of 512 bytes is fine, of 513 it is refused, the same on every route (case H07)', async () => {
      const session = await on.openSession();
      for (const [rest, status] of [
        ['\u00e9'.repeat(256), 200],
        [`${'\u00e9'.repeat(256)}x`, 400],
      ] as const) {
        expect((await on.acquire(rest, { session_id: session })).status).toBe(status);
        expect((await on.client.get(on.lockPath(rest))).status).toBe(status);
        expect((await on.client.get(on.lockPath(rest, '/held?token=1'))).status).toBe(status);
      }
    });

    test('lists come in pages that join without gap or repeat', async () => {
      const session = await on.openSession();
      const names = ['p/1', 'p/2', 'p/3', 'p/\u00e9', 'p/\u{1F512}'];
      for (const rest of [...names, 'q/1']) await on.acquire(rest, { session_id: session });
      const prefix = encodeURIComponent(`${on.alias}/p/`);
      const seen: unknown[] = [];
      let next: string | undefined;
      for (let page = 0; page < 10; page++) {
        const from: string = next === undefined ? '' : `&continue=${encodeURIComponent(next)}`;
        const { body } = await on.client.get(`/v1/locks?prefix=${prefix}&limit=2${from}`);
        for (const lock of body.locks as { name: string }[]) seen.push(lock.name);
        next = body.continue === undefined ? undefined : String(body.continue);
        if (next === undefined) break;
      }
      expect(seen).toHaveLength(names.length);
      expect(new Set(seen)).toEqual(new Set(names.map((rest) => `${on.alias}/${rest}`)));
    });
  });
}
