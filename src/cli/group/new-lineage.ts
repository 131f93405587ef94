/** `leasehold group new-lineage`: an empty log in the place of one that was rolled back, after somebody has said yes (rule S10). */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { NamespaceConfig } from '../../api/config.ts';
import { openEmbeddedLog } from '../../log/embedded/embedded-log.ts';
import { LogInUseError, LogUnavailableError } from '../../log/errors.ts';
import { openEtcdLog } from '../../log/etcd/etcd-log.ts';
import { describeProof, type LockLog } from '../../log/port.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { type NextLineage, planLineage } from '../../server/member/new-lineage.ts';
import { besideConfig, loadConfig } from '../config-file.ts';
import { UnavailableError, UsageError } from '../errors.ts';
import { findLog } from '../log/find-log.ts';
import { serverConfig, serverConfigProblems } from '../server/config.ts';
import { loadNamespace } from '../server/namespace.ts';
import { loadSecurity } from '../server/security.ts';
import { LocalGroup } from './local-group.ts';

/** Deleting a large log is one transaction, which takes etcd a while. */
const CALL_MS = 30_000;
/** Reads are short: a member that has stopped must not keep a person waiting for as long. */
const READ_MS = 3_000;

export interface NewLineageFlags {
  readonly config?: string;
  readonly dir?: string;
  readonly data?: string;
  readonly namespace?: string;
  readonly yes?: boolean;
  readonly output: 'text' | 'json';
}

interface OpenLog {
  readonly log: LockLog;
  /** Of the manifest beside the configuration; an embedded log has its own. */
  readonly config: NamespaceConfig | null;
  close(): Promise<void>;
}

const runtime = () => createSystemRuntime({ logLevel: 'warn' });

export async function runNewLineage(flags: NewLineageFlags): Promise<void> {
  const opened = await open(flags).catch(explain);
  try {
    const plan = await planLineage(opened.log, runtime(), opened.config);
    const next = flags.yes === true ? await opened.log.beginLineage(plan) : null;
    const { lineage } = opened.log;
    if (flags.output === 'json') console.log(JSON.stringify({ lineage, next, ...plan }));
    else console.log(describe(plan, next));
  } catch (error) {
    explain(error);
  } finally {
    await opened.close();
  }
}

function open(flags: NewLineageFlags): Promise<OpenLog> {
  const named = [flags.config, flags.dir, flags.data].filter((place) => place !== undefined);
  if (named.length !== 1) {
    throw new UsageError('name one log: --config of a lock server, --dir of a local group, or --data of dev');
  }
  if (flags.data !== undefined) return openDevLog(flags.data, flags.namespace);
  if (flags.dir !== undefined && LocalGroup.find(resolve(flags.dir)) === null) {
    throw new UsageError(`--dir: there is no group in ${flags.dir}`, { details: { field: '--dir' } });
  }
  return openGroupLog(flags.config ?? join(flags.dir ?? '', 'server-a.yaml'));
}

async function openDevLog(data: string, alias: string | undefined): Promise<OpenLog> {
  if (!existsSync(data)) throw new UsageError(`--data: there is no folder ${data}`);
  const directory = findLog(data, alias);
  const log = await openEmbeddedLog({ directory, ...runtime() });
  return { log, config: null, close: () => log.close() };
}

async function openGroupLog(file: string): Promise<OpenLog> {
  const config = loadConfig(file, serverConfig, serverConfigProblems);
  const beside = (path: string): string => besideConfig(file, path);
  const namespace = await loadNamespace(beside(config.namespace), config.tokens !== undefined);
  const parts = { runtime: runtime(), beside };
  const security = loadSecurity(config, namespace.config, parts);
  const close = (): void => security.close();
  try {
    const readMs = Math.max(READ_MS, config.etcd.callMs);
    const log = await openEtcdLog({
      ...config.etcd,
      ...security.etcd,
      ...parts.runtime,
      callMs: CALL_MS,
      readMs,
      onSilent: (endpoint) =>
        console.error(`the etcd member ${endpoint} does not answer; asking the next one`),
    });
    return { log, config: namespace.config, close: () => log.close().finally(close) };
  } catch (error) {
    close();
    throw error;
  }
}

function explain(error: unknown): never {
  if (error instanceof LogUnavailableError || error instanceof LogInUseError) {
    throw new UnavailableError(error.message, { cause: error });
  }
  throw error;
}

function describe({ standing, known, tokenFloor, quietMs }: NextLineage, next: string | null): string {
  const { lineage, head, halted } = standing;
  const state = halted === null ? 'It is not halted.' : `It is halted: ${describeProof(halted)}.`;
  const lost =
    known === null
      ? 'It cannot be read, so it is not known what is held in it.'
      : `By what is left of it ${known.held} locks are held in ${known.sessions} sessions.`;
  const effect = `all sessions end, tokens go on above ${tokenFloor}, and nothing is granted for ${quietMs / 1000} s`;
  const lines = [`The log is of lineage ${lineage}, with ${head.index} entries. ${state}`, lost];
  if (next === null)
    lines.push(`A new lineage: ${effect}.`, 'Nothing was changed. Repeat it with --yes to do it.');
  else lines.push(`Lineage ${next} has begun: ${effect}.`);
  return lines.join('\n');
}
