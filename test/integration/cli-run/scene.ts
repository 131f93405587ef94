/** What each test of `leasehold run` has for itself: a lock, the file that its CMDs write to, and whoever takes part. */
import { join } from 'node:path';
import { expect, type TestContext } from 'vitest';
import { AdminClient } from '../../../src/cli/admin-client.ts';
import { ADMIN_SOCKET } from '../../../src/server/grpc/socket.ts';
import { eventually, type LockApi } from '../../support/dev/lock-api.ts';
import type { SharedDev } from '../../support/dev/shared-dev.ts';
import { Gateway } from './gateway.ts';
import { RunProcess, WORK } from './run-process.ts';

/** To the first sign of life of a process on a machine that does much else. */
const START_MS_MAX = 25_000;
let last = 0;

/** A lock of its own for each test, and the file its CMDs write to. */
export class Scene {
  readonly name: string;
  readonly fullName: string;
  readonly file: string;
  readonly api: LockApi;
  readonly #shared: SharedDev;
  readonly #url: string;
  readonly #onTestFinished: TestContext['onTestFinished'];

  /** Tests run at the same time, so each must say which one it is. */
  constructor(shared: SharedDev, { onTestFinished }: TestContext, alias = 'jobs') {
    this.#shared = shared;
    this.#onTestFinished = onTestFinished;
    last += 1;
    this.name = `lock-${last}`;
    this.file = join(shared.workspace.root, this.name);
    this.api = shared.api(alias);
    this.#url = shared.process.url;
    this.fullName = `${alias}/${this.name}`;
  }
  run(script = WORK, { args, url = this.#url }: { args?: readonly string[]; url?: string } = {}): RunProcess {
    const options = { url, name: this.fullName, script, file: this.file };
    const run = new RunProcess({ ...options, ...(args !== undefined && { args }) });
    this.#onTestFinished(() => run.end());
    return run;
  }

  async gateway(): Promise<Gateway> {
    const gateway = await Gateway.start(this.#shared.process.port);
    this.#onTestFinished(() => gateway.close());
    return gateway;
  }

  async isFree(): Promise<boolean> {
    return (await this.api.tokenOf(this.name)) === null;
  }

  /** Somebody waits for it. */
  async waiting(): Promise<void> {
    await eventually(async () => (await this.api.get(this.name)).waiters === 1, START_MS_MAX);
  }

  /** As `leasehold break` does it, without the start of another process. */
  async break(now = false): Promise<void> {
    const token = (await this.api.tokenOf(this.name)) ?? 0;
    const admin = new AdminClient(join(this.#shared.workspace.data, ADMIN_SOCKET));
    const [namespace = ''] = this.fullName.split('/');
    await admin.breakLock({ namespace, name: this.name, token, now, reason: 'test', by: 'test' });
    admin.close();
  }

  /** Somebody else takes the lock, without any CMD. */
  async takenByOther(): Promise<number> {
    const { status, body } = await this.api.acquire(this.name, { client: 'other', wait_ms: 20_000 });
    expect(status).toBe(200);
    return Number(body.token);
  }
}

export async function stopWhile(run: RunProcess, work: () => Promise<unknown>): Promise<void> {
  run.kill('SIGSTOP');
  await work();
  run.kill('SIGCONT');
}
