/** Everything a run needs: the group behind proxies, its sidecars, the resource, the applications, and what is written down of them. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { toNamespaceConfig } from '../../src/api/locknamespace/effective.ts';
import { loadManifests } from '../../src/platform/manifests/load.ts';
import { ETCDS, GroupBench, SERVERS } from '../support/group/group-bench.ts';
import { Random } from '../support/random.ts';
import { Ledger } from './clients/ledger.ts';
import { runHttpWorker, runLibraryWorker, type WorkerOptions } from './clients/workers.ts';
import { DISK_MEMBER } from './faults/disk-faults.ts';
import { type FencedResource, startFencedResource } from './fenced-resource.ts';
import { SmallDisk } from './small-disk.ts';
import { SteppedClocks } from './stepped-clocks.ts';
import { Timeline } from './timeline.ts';

const SIDECARS = 3;
const TTL_MS = 6_000;
const HOT = ['hot/0', 'hot/1', 'hot/2'];
const CONTENDERS = 9;
const LIBRARY_USERS = 3;
const KEEPERS = 6;

export interface Stage {
  readonly bench: GroupBench;
  readonly disk: SmallDisk | null;
  readonly clocks: SteppedClocks | null;
  readonly ttlMs: number;
  readonly resource: FencedResource;
  readonly timeline: Timeline;
  readonly ledger: Ledger;
  /** Of the API of each sidecar, through a proxy. */
  readonly apiPorts: readonly number[];
}

export async function setStage({ asRoot }: { readonly asRoot: boolean }): Promise<Stage> {
  const parts: { disk: SmallDisk | null; clocks: SteppedClocks | null } = { disk: null, clocks: null };
  const resource = await startFencedResource();
  try {
    const bench = await GroupBench.start({
      isProxied: true,
      sidecars: SIDECARS,
      fsync: true,
      prepare: (made) => {
        parts.clocks = SteppedClocks.prepare(made, [...SERVERS, ...made.sidecars]);
        parts.disk = asRoot ? SmallDisk.make(made.folder) : null;
        if (parts.disk !== null) moveData(made, parts.disk.folder);
        return Promise.resolve();
      },
    });
    const apiPorts: number[] = [];
    for (const name of bench.sidecars) {
      const address = await bench.net.link('app', name, new URL(bench.planned(name).healthUrl).host);
      apiPorts.push(Number(address.split(':')[1]));
    }
    const { etcdEndpoints, etcdPrefix } = bench.group.plan;
    const timeline = await Timeline.start(etcdEndpoints, etcdPrefix);
    return { bench, ...parts, ttlMs: TTL_MS, resource, timeline, ledger: new Ledger(), apiPorts };
  } catch (error) {
    await parts.disk?.remove();
    await resource.stop();
    throw error;
  }
}

function moveData(bench: GroupBench, folder: string): void {
  bench.replan(DISK_MEMBER, (planned) => ({
    ...planned,
    args: planned.args.map((arg) =>
      arg.startsWith('--data-dir=') ? `--data-dir=${join(folder, 'data')}` : arg,
    ),
  }));
}

/** Applications spread over the sidecars; each kind ends when it is told. */
export function startApplications(stage: Stage, random: Random, ending: AbortSignal): Promise<void>[] {
  const { ledger, resource, ttlMs, apiPorts } = stage;
  const options = (
    kind: string,
    at: number,
    differs: Pick<WorkerOptions, 'names' | 'holdMs'>,
  ): WorkerOptions => ({
    name: `${kind}-${at}`,
    port: apiPorts[at % apiPorts.length] as number,
    ttlMs,
    random: new Random(random.int(2 ** 32)),
    ledger,
    resource,
    ending,
    ...differs,
  });
  const many = (count: number, one: (at: number) => Promise<void>) =>
    Array.from({ length: count }, (_, at) => one(at));
  return [
    ...many(CONTENDERS, (at) => runHttpWorker(options('contender', at, { names: HOT, holdMs: [20, 400] }))),
    ...many(LIBRARY_USERS, (at) =>
      runLibraryWorker(options('library', at, { names: HOT, holdMs: [20, 400] })),
    ),
    ...many(KEEPERS, (at) =>
      runHttpWorker(options('keeper', at, { names: [`kept/${at}`], holdMs: [20_000, 60_000] })),
    ),
  ];
}

/** Everything runs again, and nothing hinders it: what a fault that was cut short may have left is undone. */
export async function makeQuiet({ bench, disk, clocks }: Stage): Promise<void> {
  bench.net.heal();
  bench.net.cut('*', '*');
  disk?.thaw();
  disk?.free();
  for (const name of clocks?.names ?? []) clocks?.step(name, 0);
  for (const name of [...SERVERS, ...ETCDS, ...bench.sidecars]) bench.group.signal(name, 'SIGCONT');
  await bench.group.start();
  for (const name of ETCDS)
    await bench
      .etcd(name)
      .disarm()
      .catch(() => undefined);
  await bench.leader();
  await pause(500);
}

export async function configOf({ bench }: Stage) {
  const loaded = await loadManifests({ paths: [join(bench.folder, 'namespace.yaml')] });
  const [only] = loaded.ok ? loaded.namespaces : [];
  if (only === undefined) throw new Error('the manifest is not valid');
  return toNamespaceConfig(only.lockNamespace, { kind: 'unchecked' });
}

export async function clearStage({ bench, disk, resource }: Stage): Promise<void> {
  disk?.thaw();
  await bench.group.stop();
  await disk?.remove();
  await bench.end();
  await resource.stop();
}
