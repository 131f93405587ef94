/** The committed history over all lives, as `leasehold log dump` prints it, given to the checker with what the clients know. */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type { HistoryEntry, LockEvent } from '../../../src/api/entry.ts';
import { toNamespaceConfig } from '../../../src/api/locknamespace/effective.ts';
import { HistoryChecker } from '../../../src/history/checker.ts';
import { readHistory } from '../../../src/history/read.ts';
import type { ClientRecord } from '../../../src/history/records.ts';
import type { Verdict } from '../../../src/history/verdict.ts';
import { loadManifests } from '../../../src/platform/manifests/load.ts';
import { leasehold } from '../../support/cli.ts';
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
export async function committedHistory(workspace: Workspace, alias: string): Promise<HistoryEntry[]> {
  const args = ['log', 'dump', workspace.data, '-n', alias, '--events', '-o', 'json'];
  const { code, stdout, stderr } = await leasehold(args);
  if (code !== 0) throw new Error(`leasehold ${args.join(' ')} ended with ${code}: ${stderr}`);
  const entries: HistoryEntry[] = [];
  for await (const entry of readHistory(stdout.split('\n'))) entries.push(entry);
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
