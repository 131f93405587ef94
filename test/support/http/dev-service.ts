/** The sidecar of `leasehold dev` with leader loop and embedded log, in this process, for tests of the HTTP API. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DevNamespace } from '../../../src/cli/dev/namespace.ts';
import { loadManifests } from '../../../src/platform/manifests/load.ts';
import { createMetrics } from '../../../src/platform/prometheus.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import { Sidecar } from '../../../src/sidecar/sidecar.ts';
import { FileStateStore } from '../../../src/sidecar/state-file.ts';

/** The suites ask faster than one application may by default. */
const MANIFEST = `
apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: locks, namespace: tests}
spec:
  safety: {class: Efficiency}
  modes: [Exclusive, Shared, Semaphore]
  semaphores: [{pattern: "pool/*", permits: 3}]
  limits: {perClient: {locks: 1000, operationsPerSecond: 5000}}
`;

/** One namespace on a log in a new folder, which `close` removes. */
export async function makeDevService() {
  const dataFolder = mkdtempSync(join(tmpdir(), 'leasehold-http-'));
  const manifest = join(dataFolder, 'locks.yaml');
  writeFileSync(manifest, MANIFEST);
  const loaded = await loadManifests({ paths: [manifest] });
  if (!loaded.ok) throw new Error(`the manifest is not valid: ${JSON.stringify(loaded.errors)}`);
  const runtime = createSystemRuntime({ logLevel: 'error' });
  const store = new FileStateStore(join(dataFolder, 'sidecar.jsonl'));
  const sidecar = new Sidecar({ runtime, store });
  const context = {
    runtime,
    dataFolder,
    sidecar,
    metrics: createMetrics(),
    onStopped: () => undefined,
  };
  const served: DevNamespace[] = [];
  for (const { lockNamespace } of loaded.namespaces) {
    served.push(await DevNamespace.start(lockNamespace, context));
  }
  return {
    service: sidecar,
    runtime,
    async close() {
      sidecar.stop();
      for (const namespace of served) await namespace.stop();
      store.close();
      rmSync(dataFolder, { recursive: true });
    },
  };
}
