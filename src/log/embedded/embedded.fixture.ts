/** Tests of the embedded engine: a directory, the handles and processes on it, and cleaning up after them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { execPath } from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { appendEntries, systemPorts, temporaryDirectory } from '../log.fixture.ts';
import type { LockLog } from '../port.ts';
import {
  type EmbeddedLogOptions,
  openEmbeddedLog,
  openEmbeddedLogReadOnly,
  type ReadOnlyLog,
} from './embedded-log.ts';

const APPENDER = fileURLToPath(new URL('./appender.fixture.ts', import.meta.url));

export interface Appender {
  readonly child: ChildProcess;
  readonly lines: readonly string[];
}

export class EmbeddedBench {
  readonly #temporary = temporaryDirectory();
  readonly directory = join(this.#temporary.path, 'data', 'payouts');
  readonly file = join(this.directory, 'log.db');
  readonly #logs: Pick<LockLog, 'close'>[] = [];
  readonly #children: ChildProcess[] = [];

  async open(options: Partial<EmbeddedLogOptions> = {}): Promise<LockLog> {
    const log = await openEmbeddedLog({ directory: this.directory, ...systemPorts(), ...options });
    this.#logs.push(log);
    return log;
  }

  async openReadOnly(): Promise<ReadOnlyLog> {
    const log = await openEmbeddedLogReadOnly({ directory: this.directory, ...systemPorts() });
    this.#logs.push(log);
    return log;
  }

  /** A closed log of 20 entries. */
  async makeLog(): Promise<void> {
    const log = await this.open();
    await appendEntries(log, await log.campaign('server-a'), 20, { bytes: 3_000 });
    await log.close();
  }

  /** Changes what is stored behind the engine's back. */
  tamper(sql: string): void {
    const database = new DatabaseSync(this.file);
    database.exec(sql);
    database.close();
  }

  /** Starts appender.fixture.ts on the directory. */
  startAppender(...args: string[]): Appender {
    const child = spawn(execPath, [APPENDER, this.directory, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    const lines: string[] = [];
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const parts = (rest + text).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
    return { child, lines };
  }

  async kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }

  async remove(): Promise<void> {
    for (const log of this.#logs) await log.close();
    for (const child of this.#children) await this.kill(child);
    this.#temporary.remove();
  }
}
