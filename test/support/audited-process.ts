/**
 * A lock server alone on a log on disk, which exports its audit and takes and gives back locks until somebody kills it. Arguments: folder of the
 * log; configuration of the sink, JSON; `work`, or `quiet` to export what is left.
 */
import { auditBeside, auditConfig } from '../../src/cli/server/audit.ts';
import { openEmbeddedLog } from '../../src/log/embedded/embedded-log.ts';
import { silentAuditMetrics } from '../../src/platform/metrics.fixture.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { Leader } from '../../src/server/leader/leader.ts';
import { acquireCommand, namespaceConfig, openCommand } from './core.ts';

const [directory = '', sink = '', mode = ''] = process.argv.slice(2);
const runtime = createSystemRuntime({ logLevel: 'silent' });
const log = await openEmbeddedLog({ directory, ...runtime });
const leader = await Leader.start({
  ...{ runtime, log, serverId: 'a', reason: 'test', tokenFloor: 0, replicas: 1, beatWhenIdle: false },
  onStopped: () => undefined,
  snapshotDueBytes: 256 * 1024,
});
const version = leader.state.configVersion + 1;
await leader.submit([{ type: 'configure', version, config: namespaceConfig() }]);
const metrics = silentAuditMetrics;
auditBeside(auditConfig.parse(JSON.parse(sink)), { runtime, log, group: 'test/a', metrics })?.whileLeading(
  leader,
);
process.stdout.write(`head ${leader.position.index}\n`);
// Ends with its pipe, whatever happens to the test.
process.stdin.on('end', () => process.exit(0)).resume();

async function work(): Promise<never> {
  const [opened] = await leader.submit([openCommand()]);
  if (opened?.type !== 'opened') throw new Error('no session');
  const { session } = opened;
  for (let at = 0; ; at++) {
    const name = `lock-${at}`;
    const [granted] = await leader.submit([acquireCommand({ session, key: name, name })]);
    if (granted?.type !== 'granted') throw new Error('not granted');
    const { token } = granted;
    await leader.submit([{ type: 'release', session, attach: 1, name, token, key: '', acks: [name] }]);
  }
}

if (mode === 'work') await work();
