/** `leasehold group up`, `status` and `down`: what is printed, and with which code they end. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { LockNamespace } from '../../api/locknamespace/schema.ts';
import { type DirectoryLock, lockDirectory } from '../../log/embedded/directory-lock.ts';
import { LogInUseError } from '../../log/errors.ts';
import { formatFindings } from '../../platform/manifests/format.ts';
import { loadManifests } from '../../platform/manifests/load.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE } from '../conventions.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import { table } from '../output/table.ts';
import { LocalGroup } from './local-group.ts';

export interface UpFlags {
  readonly dir: string;
  readonly filename?: string;
  readonly etcd?: string;
  readonly insecure?: boolean;
}

interface ServerStatus {
  readonly role: string;
  readonly position: { readonly epoch: number; readonly index: number };
  readonly lag: number;
  readonly clients: number;
  readonly sessions: number;
  readonly held: number;
  readonly waiting: number;
}

const DEFAULT_MANIFEST = `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: locks, namespace: local}
spec:
  safety: {class: Efficiency}
  modes: [Exclusive, Shared]
`;

export async function runUp(flags: UpFlags): Promise<void> {
  await concluded(async () => {
    const folder = resolve(flags.dir);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const lock = lockFolder(folder);
    const group = LocalGroup.find(folder) ?? (await make(folder, flags));
    // etcd first: the servers would wait for it and log that they do.
    const names = (kind: string): string[] =>
      group.plan.processes.filter((planned) => planned.kind === kind).map(({ name }) => name);
    const started = await group.start([...names('etcd'), ...names('issuer')]);
    started.push(...(await group.start(names('server'))), ...(await group.start(names('sidecar'))));
    console.log(started.length === 0 ? 'Everything runs already.\n' : `Started: ${started.join(', ')}.\n`);
    await printStatus(group);
    printTry(group, flags.dir);
    lock.release();
  });
}

export async function runStatus(dir: string): Promise<void> {
  await concluded(() => printStatus(existing(dir)));
}

export async function runDown(dir: string): Promise<void> {
  await concluded(async () => {
    existing(dir);
    const lock = lockFolder(resolve(dir));
    // Read anew: whoever had the lock before may have started some.
    const ended = await existing(dir).stop();
    console.log(ended.length === 0 ? 'Nothing ran.' : `Ended: ${ended.join(', ')}.`);
    lock.release();
  });
}

/** Runs a command, prints how it failed, and ends with the code for that. */
export async function concluded(work: () => Promise<void>): Promise<void> {
  try {
    await work();
    process.exit(0);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exit(error instanceof UsageError ? EXIT_USAGE : EXIT_UNAVAILABLE);
  }
}

/**
 * Until it is released or this process ends. One at a time: of two, one would forget the processes that the other has started, and
 * nothing would ever end them.
 */
function lockFolder(folder: string): DirectoryLock {
  try {
    return lockDirectory(folder);
  } catch (error) {
    if (!(error instanceof LogInUseError)) throw error;
    const owner = error.pid === undefined ? '' : ` (process ${error.pid})`;
    throw new UnavailableError(
      `another "up" or "down" works in ${folder}${owner}; try again when it is done`,
      { cause: error },
    );
  }
}

function existing(dir: string): LocalGroup {
  const group = LocalGroup.find(resolve(dir));
  if (group === null) throw new UsageError(`there is no group in ${dir}; "leasehold group up" makes one`);
  return group;
}

async function make(folder: string, { filename, etcd, insecure = false }: UpFlags): Promise<LocalGroup> {
  const manifest = filename === undefined ? DEFAULT_MANIFEST : readFileSync(filename, 'utf8');
  const { metadata, spec } = await namespaceIn(filename ?? writtenDefault(folder));
  // The sidecar is to be let in: as whom the manifest says, or as anybody of its own namespace.
  const [first] = spec.consumers ?? [];
  const account = `${first?.namespace ?? metadata.namespace}/${first?.serviceAccounts?.[0] ?? 'sidecar'}`;
  const groupName = `${metadata.name}.${metadata.namespace}`;
  return LocalGroup.make({
    folder,
    alias: metadata.name,
    manifest,
    etcd: etcd ?? (await builtEtcd()),
    node: process.execPath,
    leasehold: process.argv[1] as string,
    ...(insecure ? {} : { security: { account, groupName } }),
  });
}

/** Read like any other, so that its defaults apply. */
function writtenDefault(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, 'namespace.yaml');
  writeFileSync(path, DEFAULT_MANIFEST, { mode: 0o600 });
  return path;
}

async function namespaceIn(filename: string): Promise<LockNamespace> {
  const loaded = await loadManifests({ paths: [filename] });
  if (!loaded.ok) throw new UsageError(formatFindings(loaded.errors));
  const [only] = loaded.namespaces;
  if (only === undefined || loaded.namespaces.length > 1) {
    throw new UsageError(`${filename} holds ${loaded.namespaces.length} LockNamespaces; a group serves one`);
  }
  return only.lockNamespace;
}

/** A checkout builds the etcd that its tests run against; an installed package has none. */
async function builtEtcd(): Promise<string> {
  const script = new URL('../../../scripts/etcd.mjs', import.meta.url).href;
  const built = (await import(script).catch(() => null)) as { ensureEtcd(): Promise<string> } | null;
  if (built === null) throw new UsageError('name the etcd to run (3.6) with --etcd');
  return built.ensureEtcd();
}

async function printStatus(group: LocalGroup): Promise<void> {
  const rows = await Promise.all(
    group.plan.processes.map(async ({ name, kind }) => {
      const pid = group.pidOf(name);
      const answer = pid === null ? null : await group.probe(name);
      const state = pid === null ? 'ended' : answer === null ? 'no answer' : 'serves';
      const shown = kind === 'server' && answer !== null ? serverCells(answer as ServerStatus) : [];
      return [
        name,
        pid === null ? '-' : String(pid),
        ...(shown.length > 0 ? shown : [state, '', '', '', '']),
      ];
    }),
  );
  const head = ['PROCESS', 'PID', 'STATE', 'EPOCH', 'INDEX', 'LAG', 'CLIENTS'];
  console.log(table(head, rows).join('\n'));
}

function serverCells({ role, position, lag, clients }: ServerStatus): string[] {
  return [role, String(position.epoch), String(position.index), String(lag), String(clients)];
}

function printTry({ plan }: LocalGroup, dir: string): void {
  const again = dir === '.leasehold/group' ? '' : ` --dir ${dir}`;
  console.log(`
Try it:
  leasehold run ${plan.alias}/my-lock --url ${plan.apiUrl} --wait 30s -- sleep 60
  curl -s ${plan.apiUrl}/v1/locks/${plan.alias}%2Fmy-lock
Who may lock, and how much: edit namespace.yaml in its folder; a change is in force within seconds${
    plan.account === null
      ? ''
      : `
  (its sidecar is ${plan.account})`
  }.
Kill one:
  kill -9 <PID of the server that leads, or of any other process above>
  leasehold group status${again}        # who leads now
  leasehold group up${again}            # starts again what has ended
End all:
  leasehold group down${again}
`);
}
