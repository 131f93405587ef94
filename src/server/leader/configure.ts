/** Bringing a namespace's configuration into force through the leader. */
import type { NamespaceConfig } from '../../api/config.ts';
import { canonicalJson } from '../../core/index.ts';
import type { Leader } from './leader.ts';

/** Returns whether it differed from what was in force; rejects when it could not be brought into force. One call at a time. */
export async function configure(leader: Leader, config: NamespaceConfig | null): Promise<boolean> {
  const { configVersion, config: current } = leader.state;
  if (configVersion > 0 && canonicalJson(current) === canonicalJson(config)) return false;
  const [result] = await leader.submit([{ type: 'configure', version: configVersion + 1, config }]);
  if (result?.type !== 'done') throw new Error(`the configuration was refused: ${JSON.stringify(result)}`);
  return true;
}
