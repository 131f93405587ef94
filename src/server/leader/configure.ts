/** Bringing a namespace's configuration into force through the leader. */
import type { NamespaceConfig } from '../../api/config.ts';
import { canonicalJson } from '../../core/index.ts';
import type { Leader } from './leader.ts';

/**
 * Whose locks a log holds is never changed: sessions and locks would change hands. Two groups on one etcd under one prefix, or a server with
 * the manifest of another group, come here.
 * @throws Error `wanted` is another LockNamespace than the one in force
 */
export function checkSameNamespace(inForce: NamespaceConfig | null, wanted: NamespaceConfig | null): void {
  if (inForce === null || wanted === null) return;
  const [of, other] = [inForce, wanted].map(({ namespace, name }) => `${namespace}/${name}`);
  if (of === other) return;
  throw new Error(
    `the log is that of the LockNamespace ${of}, and the manifest here is of ${other}: give each group an etcd.prefix of its own, or this one the manifest of ${of}`,
  );
}

/** Returns whether it differed from what was in force; rejects when it could not be brought into force. One call at a time. */
export async function configure(leader: Leader, config: NamespaceConfig | null): Promise<boolean> {
  const { configVersion, config: current } = leader.state;
  checkSameNamespace(current, config);
  if (configVersion > 0 && canonicalJson(current) === canonicalJson(config)) return false;
  const [result] = await leader.submit([{ type: 'configure', version: configVersion + 1, config }]);
  if (result?.type !== 'done') throw new Error(`the configuration was refused: ${JSON.stringify(result)}`);
  return true;
}
