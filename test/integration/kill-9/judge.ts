/** The committed history over all lives, read as nobody but the log's own reader sees it, and given to the checker. */
import { join } from 'node:path';
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { HistoryEntry, LockEvent } from '../../../src/api/entry.ts';
import { toNamespaceConfig } from '../../../src/api/locknamespace/effective.ts';
import { createState } from '../../../src/core/index.ts';
import { HistoryChecker } from '../../../src/history/checker.ts';
import type { ClientRecord } from '../../../src/history/records.ts';
import type { Verdict } from '../../../src/history/verdict.ts';
import { openEmbeddedLogReadOnly } from '../../../src/log/embedded/embedded-log.ts';
import { loadManifests } from '../../../src/platform/manifests/load.ts';
import { createSystemRuntime } from '../../../src/platform/system-runtime.ts';
import { replay } from '../../../src/server/recovery.ts';
import type { Workspace } from '../../support/dev/workspace.ts';
import type { KnownGrant } from './ledger.ts';

type Granted = Extract<LockEvent, { type: 'granted' }>;

export interface Judgement {
  readonly verdict: Verdict;
  readonly takeOvers: number;
  /** Acknowledged grants that the record does not have, or has otherwise. */
  readonly unknown: readonly KnownGrant[];
}

/** All that was committed in one namespace since its birth. */
export async function readHistory(workspace: Workspace, namespace: string): Promise<HistoryEntry[]> {
  const runtime = createSystemRuntime({ logLevel: 'error' });
  const log = await openEmbeddedLogReadOnly({ directory: join(workspace.data, namespace), ...runtime });
  const state = createState(log.lineage);
  const entries: HistoryEntry[] = [];
  for await (const stored of log.read(1)) {
    const { entry, applied } = replay(state, stored);
    const { lineage, epoch, index, at, wallMs, eventHash } = entry;
    entries.push({ lineage, epoch, index, at, wallMs, eventHash, events: applied.events });
  }
  await log.close();
  return entries;
}

/** The configuration of the one namespace, as its first version was. */
export async function configOf(workspace: Workspace): Promise<NamespaceConfig> {
  const loaded = await loadManifests({ paths: [workspace.manifests] });
  if (!loaded.ok) throw new Error('the manifests are not valid');
  const [first] = loaded.namespaces;
  if (first === undefined) throw new Error('there is no namespace');
  return toNamespaceConfig(first.lockNamespace, { kind: 'unchecked' });
}

/** Run time is the wall clock, which clients, leader and this process share. */
export function judge(
  history: readonly HistoryEntry[],
  grants: readonly KnownGrant[],
  config: NamespaceConfig,
): Judgement {
  const checker = new HistoryChecker({ configs: new Map([[1, config]]) });
  const granted = new Map<number, Granted>();
  let takeOvers = 0;
  for (const entry of history) {
    checker.entry(entry, entry.wallMs);
    for (const event of entry.events) {
      if (event.type === 'granted') granted.set(event.token, event);
      if (event.type === 'tookOver') takeOvers++;
    }
  }
  const lineage = history[0]?.lineage ?? '';
  const unknown: KnownGrant[] = [];
  for (const grant of grants) {
    const event = granted.get(grant.token);
    if (event?.name !== grant.name) unknown.push(grant);
    else for (const record of recordsOf(grant, event, lineage)) checker.client(record);
  }
  return { verdict: checker.finish({ quiet: true, clientsGone: true }), takeOvers, unknown };
}

function recordsOf(grant: KnownGrant, { session, key }: Granted, lineage: string): ClientRecord[] {
  const { name, token, reportedAt, seenHeldAt, gaveUpAt, releasedAt } = grant;
  const of = { lineage, session, name, token };
  const records: ClientRecord[] = [{ type: 'grantReported', ...of, key, at: reportedAt }];
  if (seenHeldAt !== null) records.push({ type: 'heldInterval', ...of, from: reportedAt, to: seenHeldAt });
  if (gaveUpAt !== null) records.push({ type: 'gaveUp', ...of, at: gaveUpAt });
  if (releasedAt !== null) records.push({ type: 'releaseConfirmed', ...of, at: releasedAt });
  return records;
}
