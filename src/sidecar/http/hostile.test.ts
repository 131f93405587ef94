/** Requests that nobody should send: each is answered 4xx, naming what is wrong, and leaves the server as it was. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendBytes } from '../../../test/support/http/client.ts';
import { bytesOf, parse } from '../../../test/support/http/hostile.ts';
import { HOSTILE_BODIES } from '../../../test/support/http/hostile-bodies.ts';
import { HOSTILE_TARGETS } from '../../../test/support/http/hostile-targets.ts';
import { type ServedFake, serveFake } from '../../../test/support/http/serve-fake.ts';

const QUIET_MS = 2_000;
const HOSTILE = [...HOSTILE_BODIES, ...HOSTILE_TARGETS];

describe('hostile requests', () => {
  let served: ServedFake;
  let sessionId: string;
  beforeAll(async () => {
    served = await serveFake();
    ({ sessionId } = await served.fake.openSession({ client: 'worker', keepalive: 'app' }));
  });
  afterAll(() => served.close());

  test('there are enough of them, each once', () => {
    expect(HOSTILE.length).toBeGreaterThan(120);
    expect(new Set(HOSTILE.map(({ title }) => title)).size).toBe(HOSTILE.length);
  });

  test.each(HOSTILE)('$title', async (hostile) => {
    served.fake.calls.length = 0;
    const reply = await sendBytes(served.server.port, bytesOf(hostile, sessionId), QUIET_MS);
    const { status, body } = parse(reply);
    const code = hostile.code ?? 'INVALID';
    expect({ status, code: body.code, field: body.field }, reply).toEqual({
      status: hostile.status,
      code,
      field: hostile.field,
    });
    expect(body.message).toBeTypeOf('string');
    if (hostile.limit !== undefined) expect(body.limit).toBe(hostile.limit);
    if (hostile.reason !== undefined) expect(body.message).toMatch(hostile.reason);
    if (code === 'INVALID') {
      expect(['number', 'string']).toContain(typeof body.limit);
      expect(body.problems).toEqual(
        expect.arrayContaining([{ field: body.field, limit: body.limit, reason: body.reason }]),
      );
    }
    expect(served.fake.calls).toEqual([]);
    expect(served.logged).toEqual([]);
    expect((await served.client.get('/livez')).status).toBe(200);
  });

  test('all problems of a request are told at once, the name among them', async () => {
    const { status, body } = await served.client.post('/v1/locks/nowhere/acquire?x=1', {
      wait_ms: -1,
      mode: 'SHARED',
      owner: 5,
      wait: 3,
    });
    expect(status).toBe(400);
    const problems = body.problems as { field: string }[];
    expect(problems.map(({ field }) => field)).toEqual(['name', 'x', 'owner', 'mode', 'wait_ms', 'wait']);
    expect(body).toMatchObject({ acquired: false, field: 'name' });
    expect(body.message).toMatch(/and 5 more/);
  });

  test('of a thousand unknown fields twenty are listed', async () => {
    const body = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`field${index}`, 1]));
    const answer = await served.client.post('/v1/sessions', body);
    expect(answer.status).toBe(400);
    expect(answer.body.problems).toHaveLength(20);
  });
});
