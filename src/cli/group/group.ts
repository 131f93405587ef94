/** `leasehold group up`, `status` and `down`: what is printed, and with which code they end. */
import { ok as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { LockNamespace } from '../../api/locknamespace/schema.ts';
import { type DirectoryLock, LOCK_FILES, lockDirectory } from '../../log/embedded/directory-lock.ts';
import { LogInUseError } from '../../log/errors.ts';
import { formatFindings } from '../../platform/manifests/format.ts';
import { loadManifests } from '../../platform/manifests/load.ts';
import { parseManifests } from '../../platform/manifests/parse.ts';
import { GROUP_FOLDER_DEFAULT } from '../conventions.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import { refuseForeignFiles, usableFolder } from '../folders.ts';
import { shellWord, thisProgram } from '../invocation.ts';
import type { OutputFormat } from '../options.ts';
import { conclude, print } from '../output/outcome.ts';
import { table } from '../output/table.ts';
import { LocalGroup } from './local-group.ts';

export interface OfLocalGroup {
  readonly dir: string;
  readonly output: OutputFormat;
}

export interface UpFlags extends OfLocalGroup {
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
  readonly storageProblem: string | null;
}

const DEFAULT_MANIFEST = `apiVersion: leasehold.dev/v1alpha1
kind: LockNamespace
metadata: {name: locks, namespace: local}
spec:
  safety: {class: Efficiency}
  modes: [Exclusive, Shared]
`;

export async function runUp(flags: UpFlags): Promise<void> {
  await concluded(flags.output, async () => {
    const folder = resolve(flags.dir);
    usableFolder('--dir', folder);
    // Nothing is written among files of somebody else, not even the lock; whoever has it is writing right now.
    const isOurs =
      LOCK_FILES.some((name) => existsSync(join(folder, name))) || LocalGroup.find(folder) !== null;
    if (!isOurs) refuseForeignFiles('--dir', folder, []);
    const lock = lockFolder(folder);
    const made = LocalGroup.find(folder);
    if (made !== null) refuseOtherGroup(made, flags);
    const group = made ?? (await make(folder, flags));
    // etcd first: the servers would wait for it and log that they do.
    const names = (kind: string): string[] =>
      group.plan.processes.filter((planned) => planned.kind === kind).map(({ name }) => name);
    const started = await group.start([...names('etcd'), ...names('issuer')]);
    started.push(...(await group.start(names('server'))), ...(await group.start(names('sidecar'))));
    const processes = await processesOf(group);
    const { alias, apiUrl: url } = group.plan;
    if (flags.output === 'json') {
      await print(JSON.stringify({ started, alias, url, folder, processes }));
    } else {
      await print(started.length === 0 ? 'Everything runs already.\n' : `Started: ${started.join(', ')}.\n`);
      await print(processTable(processes));
      await print(tryText(group, flags.dir));
    }
    lock.release();
  });
}

export async function runStatus({ dir, output }: OfLocalGroup): Promise<void> {
  await concluded(output, async () => {
    const processes = await processesOf(existing(dir));
    await print(output === 'json' ? JSON.stringify({ processes }, null, 2) : processTable(processes));
  });
}

export async function runDown({ dir, output }: OfLocalGroup): Promise<void> {
  await concluded(output, async () => {
    existing(dir);
    const lock = lockFolder(resolve(dir));
    // Read anew: whoever had the lock before may have started some.
    const ended = await existing(dir).stop();
    const text =
      ended.length === 0
        ? 'Nothing ran.'
        : `Ended: ${ended.join(', ')}.\nWhat they wrote is kept in ${dir}; "${thisProgram()} group up${dirFlag(dir)}" goes on with it.`;
    await print(output === 'json' ? JSON.stringify({ ended }) : text);
    lock.release();
  });
}

/** As `conclude`; and ends the process, although connections may be open still. */
export async function concluded(output: OutputFormat | 'text', work: () => Promise<void>): Promise<void> {
  await conclude(() => work().then(() => true), output);
  process.exit();
}

/**
 * Until it is released or this process ends. One at a time: of two, one would forget the processes that the other has started, and
 * nothing would ever end them.
 */
function lockFolder(folder: string): DirectoryLock {
  try {
    return lockDirectory(folder);
  } catch (error) {
    if (!(error instanceof LogInUseError)) {
      throw new UsageError(`--dir: ${folder} cannot be written to: ${(error as Error).message}`, {
        cause: error,
      });
    }
    const owner = error.pid === undefined ? '' : ` (process ${error.pid})`;
    throw new UnavailableError(
      `another "up" or "down" works in ${folder}${owner}; try again when it is done`,
      { cause: error },
    );
  }
}

function existing(dir: string): LocalGroup {
  const group = LocalGroup.find(resolve(dir));
  if (group === null) {
    const up = `${thisProgram()} group up${dirFlag(dir)}`;
    throw new UsageError(`there is no group in ${dir}; "${up}" makes one`, { details: { field: '--dir' } });
  }
  return group;
}

async function make(folder: string, { filename, etcd, insecure = false }: UpFlags): Promise<LocalGroup> {
  refuseForeignFiles('--dir', folder, LOCK_FILES);
  const { metadata, spec } = await namespaceIn(filename);
  const manifest = filename === undefined ? DEFAULT_MANIFEST : readFileSync(filename, 'utf8');
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

/** What a group is made of stays: a manifest that is not taken would be believed to be in force. @throws UsageError */
function refuseOtherGroup({ plan }: LocalGroup, { dir, filename, insecure = false }: UpFlags): void {
  const other = `or name another folder with --dir, or end it and delete ${dir}`;
  if (insecure && plan.account !== null) {
    throw new UsageError(
      `--insecure: the group in ${dir} was made with certificates: leave the flag out, ${other}`,
      {
        details: { field: '--insecure' },
      },
    );
  }
  if (filename === undefined) return;
  const manifest = join(dir, 'namespace.yaml');
  if (existsSync(manifest) && textOf(filename) === readFileSync(manifest, 'utf8')) return;
  throw new UsageError(
    `--filename: the group in ${dir} is made already: change its own manifest, ${manifest}, ${other}`,
    { details: { field: '--filename' } },
  );
}

/** Null: it cannot be read. */
function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** Left out: the default, read like any other, so that its own defaults apply. */
async function namespaceIn(filename: string | undefined): Promise<LockNamespace> {
  if (filename === undefined) {
    const [own] = parseManifests(DEFAULT_MANIFEST, 'namespace.yaml').namespaces;
    assert(own !== undefined, 'the manifest that a group gets without another is valid');
    return own.lockNamespace;
  }
  const loaded = await loadManifests({ paths: [filename] });
  if (!loaded.ok) throw new UsageError(formatFindings(loaded.errors));
  const [only] = loaded.namespaces;
  if (only === undefined || loaded.namespaces.length > 1) {
    const count = loaded.namespaces.length;
    throw new UsageError(`--filename: ${filename} holds ${count} LockNamespaces; a group serves one`);
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

interface ProcessStatus {
  readonly name: string;
  readonly kind: string;
  /** Null: it has ended. */
  readonly pid: number | null;
  readonly serves: boolean;
  /** Of a lock server that answers. */
  readonly server: ServerStatus | null;
}

function processesOf(group: LocalGroup): Promise<ProcessStatus[]> {
  return Promise.all(
    group.plan.processes.map(async ({ name, kind }) => {
      const pid = group.pidOf(name);
      const answer = pid === null ? null : await group.probe(name);
      const server = kind === 'server' && answer !== null ? (answer as ServerStatus) : null;
      return { name, kind, pid, serves: answer !== null, server };
    }),
  );
}

function processTable(processes: readonly ProcessStatus[]): string {
  const rows = processes.map(({ name, pid, serves, server }) => {
    const state = pid === null ? 'ended' : serves ? 'serves' : 'no answer';
    const shown = server === null ? [state, '', '', '', ''] : serverCells(server);
    return [name, pid === null ? '-' : String(pid), ...shown];
  });
  const problems = processes.flatMap(({ name, server }) =>
    server?.storageProblem == null ? [] : [`${name}: ${server.storageProblem}`],
  );
  return [...table(['PROCESS', 'PID', 'STATE', 'EPOCH', 'INDEX', 'LAG', 'CLIENTS'], rows), ...problems].join(
    '\n',
  );
}

function serverCells({ role, position, lag, clients }: ServerStatus): string[] {
  return [role, String(position.epoch), String(position.index), String(lag), String(clients)];
}

function dirFlag(dir: string): string {
  return dir === GROUP_FOLDER_DEFAULT ? '' : ` --dir ${shellWord(dir)}`;
}

function tryText({ plan }: LocalGroup, dir: string): string {
  const leasehold = thisProgram();
  const group = (verb: string): string => `${leasehold} group ${verb}${dirFlag(dir)}`;
  const who =
    plan.account === null
      ? ''
      : `\n  (if it names "consumers", then ${plan.account} too, the account of this sidecar)`;
  return `
Try it (the first for a minute, so the others in a second terminal):
  ${leasehold} run ${plan.alias}/my-lock --url ${plan.apiUrl} --wait 30s -- sleep 60
  curl -s ${plan.apiUrl}/v1/locks/${plan.alias}%2Fmy-lock
  ${leasehold} group members --data ${shellWord(dir)}
Who may lock, and how much: edit ${shellWord(join(dir, 'namespace.yaml'))}; a change is in force within
  seconds, or refused with the reason in the servers' logs beside it${who}.
Kill one (a sidecar that does not serve again within 6 s ends the run above):
  kill -9 <PID of the server that leads, or of any other process above>
  ${group('status')}        # who leads now
  ${group('up')}            # starts again what has ended
End all:
  ${group('down')}
`;
}
