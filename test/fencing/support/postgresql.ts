/**
 * A throw-away PostgreSQL: a cluster of its own in a temporary folder, on a Unix socket only. It refuses to run as root, so
 * root starts it as `postgres`, or as `nobody` where that user is missing.
 */
import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import pg from 'pg';
import { ServerProcess } from '../../support/server-process.ts';

const START_MS_MAX = 20_000;
const SUPERUSER = 'tester';

/** Where initdb and postgres are: on PATH, or where Debian puts them. */
function binaryFolder(): string {
  const candidates = [
    ...(process.env.PATH ?? '').split(delimiter),
    ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
  ];
  const found = candidates.find((folder) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
  if (found === undefined) throw new Error('PostgreSQL is not installed: no folder with initdb and postgres');
  return found;
}

function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const fields = lines.find((line) => line.startsWith(`${name}:`))?.split(':');
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  throw new Error('PostgreSQL does not run as root, and there is neither a user postgres nor nobody');
}

export class Postgres {
  readonly #folder: string;
  readonly #server: ServerProcess;
  readonly #clients: pg.Client[] = [];

  private constructor(folder: string, server: ServerProcess) {
    this.#folder = folder;
    this.#server = server;
  }

  /** `isDurable`: syncs every commit, as it would in production; tests lose no power. */
  static async start({ isDurable = false } = {}): Promise<Postgres> {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-pg-'));
    const user = serverUser();
    if (user !== undefined) chownSync(folder, user.uid, user.gid);
    const binaries = binaryFolder();
    const data = join(folder, 'data');
    const init = ['-D', data, '-U', SUPERUSER, '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
    execFileSync(join(binaries, 'initdb'), init, { cwd: folder, stdio: 'pipe', ...user });
    const server = new ServerProcess({
      command: join(binaries, 'postgres'),
      args: [
        '-D',
        data,
        '-k',
        folder,
        '-c',
        'listen_addresses=',
        '-c',
        `fsync=${isDurable ? 'on' : 'off'}`,
        '-c',
        'max_connections=40',
      ],
      cwd: folder,
      ...(user !== undefined && { user }),
      stopSignal: 'SIGINT',
    });
    const postgres = new Postgres(folder, server);
    await server.until(async () => {
      const client = new pg.Client(postgres.connection);
      await client.connect();
      await client.end();
      return true;
    }, START_MS_MAX);
    return postgres;
  }

  get connection(): pg.ClientConfig {
    return { host: this.#folder, user: SUPERUSER, database: 'postgres' };
  }

  /** For programs that connect by themselves. */
  get url(): string {
    return `postgresql://${SUPERUSER}@localhost/postgres?host=${encodeURIComponent(this.#folder)}`;
  }

  /** To its first process, which takes new connections. */
  signal(name: NodeJS.Signals): void {
    this.#server.signal(name);
  }

  /** One more connection, closed with the server. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client(this.connection);
    client.on('error', () => undefined);
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    await Promise.allSettled(this.#clients.map((client) => client.end()));
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
