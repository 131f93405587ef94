/** `leasehold dev` processes of one test, with their folders and clients; whatever is left of them goes with the test. */
import type { TestContext } from 'vitest';
import { DevProcess } from './dev-process.ts';
import { LockApi } from './lock-api.ts';
import { type NamespaceSpec, Workspace } from './workspace.ts';

export class OwnDev {
  readonly #processes: DevProcess[] = [];
  readonly #workspaces: Workspace[] = [];
  readonly #apis: LockApi[] = [];

  constructor({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
    onTestFinished(async () => {
      for (const api of this.#apis) api.end();
      await Promise.all(this.#processes.map((dev) => (dev.hasExited ? undefined : dev.kill())));
      for (const workspace of this.#workspaces) workspace.remove();
    });
  }

  workspace(...specs: readonly NamespaceSpec[]): Workspace {
    const workspace = new Workspace();
    this.#workspaces.push(workspace);
    workspace.write(...specs);
    return workspace;
  }

  /** Starts it without waiting for anything. */
  spawn({ manifests, data }: Workspace, port = 0): DevProcess {
    const dev = DevProcess.spawn({ manifests: [manifests], data, port });
    this.#processes.push(dev);
    return dev;
  }

  async start(workspace: Workspace): Promise<DevProcess> {
    const dev = this.spawn(workspace);
    await dev.serving();
    return dev;
  }

  api({ port }: DevProcess, alias: string): LockApi {
    const api = new LockApi(port, alias);
    this.#apis.push(api);
    return api;
  }
}
