/**
 * Sinks that mean harm, or are broken in a way that a test of "it is away" does not show. Whatever they do: the leader's commits are as quick as
 * before, little memory is taken, one line of the log says what it is, the exporter ends at once, and once the sink is well again nothing is
 * missing. PostgreSQL: test/fencing/audit-postgresql.test.ts; a pipe that nobody reads: test/integration/audit-stdout.test.ts.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock, systemTimers } from '../../platform/system-runtime.ts';
import { FileSink } from './file-sink.ts';
import { endAll, ends, indexesIn, Scene, survives, type Victim } from './hostile-scene.fixture.ts';
import { HttpSink } from './http-sink.ts';
import { StreamSink } from './stream-sink.ts';

afterEach(endAll);

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-hostile-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function httpVictim(hostile: Handler): Promise<Victim & { readonly url: string }> {
  const got: string[] = [];
  let handler = hostile;
  const server: Server = createServer((request, response) => handler(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/audit`;
  const sink = new HttpSink({ url, headers: {}, timeoutMs: 300, clock: systemClock, timers: systemTimers });
  const heal = (): void => {
    handler = (request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        got.push(...body.trimEnd().split('\n'));
        response.writeHead(204).end();
      });
    };
  };
  return { url, sink, heal, indexes: () => indexesIn(got) };
}

const answering =
  (status: number, headers: Record<string, string> = {}): Handler =>
  (request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(status, headers).end('no'));
  };

describe('an HTTP receiver', () => {
  test('that accepts and never answers', async () => {
    await survives(
      await httpVictim((request) => request.resume()),
      /does not take: .*no answer within 300 ms/,
    );
  });

  test('that never reads what it is sent', async () => {
    await survives(await httpVictim(() => undefined), /does not take: .*no answer within 300 ms/);
  });

  test('that answers 500', async () => {
    await survives(await httpVictim(answering(500)), /were answered 500: no/);
  });

  test('that redirects to where the secrets must not go', async () => {
    let followed = 0;
    const elsewhere = await httpVictim(() => followed++);
    const victim = await httpVictim(answering(307, { location: elsewhere.url }));
    await survives(victim, /answered 307 \(redirections are not followed: set audit.url/);
    expect(followed).toBe(0);
  });

  test('that drips its refusal, a byte now and then', async () => {
    let open = 0;
    const drip: Handler = (request, response) => {
      request.resume();
      open++;
      response.writeHead(500).flushHeaders();
      const timer = setInterval(() => response.write('x'), 100);
      response.on('close', () => {
        clearInterval(timer);
        open--;
      });
    };
    await survives(await httpVictim(drip), /were answered 500: x+$/);
    await expect.poll(() => open).toBe(0);
  });

  test('that closes in the middle of its refusal', async () => {
    const victim = await httpVictim((request, response) => {
      request.resume();
      request.on('end', () => {
        response.writeHead(500, { 'content-length': '1000' }).write('half');
        setTimeout(() => response.destroy(), 10);
      });
    });
    await survives(victim, /were answered 500: half \(the rest did not come\)/);
  });

  test('that answers with a gigabyte', async () => {
    let sent = 0;
    const flood: Handler = (request, response) => {
      request.resume();
      const block = Buffer.alloc(1024 * 1024, 'x');
      const more = (): void => {
        while (sent < 1024 ** 3 && !response.destroyed) {
          sent += block.length;
          if (!response.write(block)) {
            response.once('drain', more);
            return;
          }
        }
      };
      response.writeHead(500);
      more();
    };
    await survives(await httpVictim(flood), /were answered 500: x{500}$/);
    expect(sent).toBeLessThan(256 * 1024 * 1024);
  });

  test('that says when to come again is left alone until then', async () => {
    let asked = 0;
    const victim = await httpVictim((request, response) => {
      asked++;
      answering(429, { 'retry-after': '60' })(request, response);
    });
    await survives(victim, /were answered 429: no/);
    // Once by the exporter that was told to wait.
    expect(asked).toBe(1);
  });

  test('that takes the batch and never ends its answer has it once', async () => {
    const got: string[] = [];
    const victim = await httpVictim((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        got.push(...body.trimEnd().split('\n'));
        response.writeHead(200).write('th');
      });
    });
    const scene = await Scene.make();
    scene.exporting(victim.sink);
    await expect.poll(() => got.length, { timeout: 5_000 }).toBe(scene.head);
    expect(scene.told).toEqual([]);
  });
});

describe('a file', () => {
  const linesOf = (path: string): string[] =>
    existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];

  test('on a disk that is full', async (context) => {
    const folder = temporaryFolder();
    const mounted = join(folder, 'full');
    mkdirSync(mounted);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', mounted], { stdio: 'ignore' });
    } catch {
      context.skip('only root can mount a small disk');
    }
    ends.push(() => void execFileSync('umount', ['-l', mounted]));
    try {
      writeFileSync(join(mounted, 'filler'), Buffer.alloc(2 * 1024 * 1024));
    } catch {
      // Full.
    }
    const path = join(mounted, 'audit.ndjson');
    const heal = (): void => void execFileSync('mount', ['-o', 'remount,size=64m', mounted]);
    const sink = new FileSink({ path, fsync: 'batch' });
    await survives({ sink, heal, indexes: () => indexesIn(linesOf(path)) }, /does not take: .*ENOSPC/);
  });

  test('that is a FIFO which nobody reads', async () => {
    const path = join(temporaryFolder(), 'audit.ndjson');
    execFileSync('mkfifo', [path]);
    const sink = new FileSink({ path, fsync: 'batch' });
    const victim = { sink, heal: () => rmSync(path), indexes: () => indexesIn(linesOf(path)) };
    await survives(victim, /does not take: .*no regular file: set audit.path/);
  });

  test('whose folder is gone', async () => {
    const folder = join(temporaryFolder(), 'audit');
    const path = join(folder, 'audit.ndjson');
    const sink = new FileSink({ path, fsync: 'batch' });
    const victim = { sink, heal: () => mkdirSync(folder), indexes: () => indexesIn(linesOf(path)) };
    await survives(victim, /does not take: .*ENOENT/);
  });
});

test('a stream that takes nothing more holds one batch, and the exporter that was stopped holds up no other', async () => {
  const written: string[] = [];
  let done: (() => void) | null = null;
  let isHealed = false;
  const stream = new Writable({
    write(bytes: Buffer, _encoding, callback) {
      written.push(bytes.toString());
      if (isHealed) callback();
      else done = callback;
    },
  });
  const scene = await Scene.make();
  const sink = new StreamSink(stream);
  for (let exporters = 0; exporters < 5; exporters++) {
    const exporter = scene.exporting(sink);
    await scene.work(300);
    expect(exporter.lag.lagEntries).toBeGreaterThan(0);
    exporter.stop();
    await sink.close();
  }
  expect(stream.writableLength).toBe(written[0]?.length);
  isHealed = true;
  (done as (() => void) | null)?.();
  scene.exporting(sink);
  const wanted = await scene.indexes(false);
  await expect
    .poll(() => [...indexesIn(written.flatMap((text) => text.trimEnd().split('\n')))])
    .toEqual(wanted);
});
