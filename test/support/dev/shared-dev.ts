/** One `leasehold dev` for all tests of a file; it must have nothing to complain of when they are done. */
import { afterAll, beforeAll, expect } from 'vitest';
import { DevProcess } from './dev-process.ts';
import { LockApi } from './lock-api.ts';
import { type NamespaceSpec, Workspace } from './workspace.ts';

const START_MS_MAX = 60_000;

export interface SharedDev {
  readonly process: DevProcess;
  readonly workspace: Workspace;
  /** A client of its own, by default of the first namespace. */
  api(alias?: string): LockApi;
}

/** Call it at the top of a test file; use what it gives inside tests. */
export function shareDev(first: NamespaceSpec, ...more: readonly NamespaceSpec[]): SharedDev {
  const workspace = new Workspace();
  const apis: LockApi[] = [];
  let dev: DevProcess | null = null;
  const running = (): DevProcess => {
    if (dev === null) throw new Error('leasehold dev does not run');
    return dev;
  };
  beforeAll(async () => {
    workspace.write(first, ...more);
    dev = await DevProcess.start({ manifests: [workspace.manifests], data: workspace.data });
  }, START_MS_MAX);
  afterAll(async () => {
    for (const api of apis) api.end();
    const exit = await dev?.stop();
    workspace.remove();
    expect({ ...exit, stderr: dev?.stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  });
  return {
    get process() {
      return running();
    },
    workspace,
    api(alias = first.name) {
      const api = new LockApi(running().port, alias);
      apis.push(api);
      return api;
    },
  };
}
