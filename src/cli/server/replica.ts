/**
 * One replica of a group: its member, and what tells of it or runs beside it (relay, figures, audit). At which addresses it is served is
 * lock-server.ts's to say.
 */
import type { NamespaceConfig } from '../../api/config.ts';
import type { LockLog } from '../../log/port.ts';
import type { Metrics, ServerGauges } from '../../platform/metrics.ts';
import { createMetrics } from '../../platform/prometheus.ts';
import type { Runtime } from '../../platform/runtime.ts';
import type { Shard } from '../../server/front-end/admission.ts';
import { PeerCalls } from '../../server/grpc/peer-calls.ts';
import type { Protocol } from '../../server/grpc/proto.ts';
import { relayDialer } from '../../server/grpc/relay-client.ts';
import { RelayService } from '../../server/grpc/relay-service.ts';
import type { Served } from '../../server/grpc/served.ts';
import { relayMethod } from '../../server/grpc/streams.ts';
import { GroupReplica } from '../../server/member/group-replica.ts';
import { Member } from '../../server/member/member.ts';
import { Metering } from '../../server/member/metering.ts';
import { bucketsIn } from '../bucket-ranges.ts';
import { auditBeside } from './audit.ts';
import type { ServerConfig } from './config.ts';
import type { ServerSecurity } from './security.ts';

export interface ReplicaParts {
  readonly config: ServerConfig;
  readonly namespace: NamespaceConfig;
  /** Its full name. */
  readonly group: string;
  readonly runtime: Runtime;
  readonly protocol: Protocol;
  readonly security: ServerSecurity;
  readonly log: LockLog;
  /** The log was rolled back: it stays and serves nothing. */
  readonly onRolledBack: () => void;
  readonly onReplaced: () => void;
  readonly onHalted: (error: unknown) => void;
}

export interface Replica {
  readonly member: Member;
  readonly relay: RelayService;
  readonly metrics: Metrics;
  /** As operators see it. */
  readonly served: Served;
  readonly peers: PeerCalls;
  /** Hands over, if it leads. */
  stop(): Promise<void>;
}

const NOTHING_YET: ServerGauges = {
  sessions: 0,
  heldLocks: 0,
  waiters: 0,
  longestQueue: 0,
  logBytes: 0,
  snapshotBytes: 0,
};

export function startReplica(parts: ReplicaParts): Replica {
  const { config, namespace, group, runtime, protocol, security, log } = parts;
  const { serverId, peers: addresses } = config;
  const metrics = createMetrics({ processMetrics: true });
  const figures = metrics.server(namespace.name);
  const metering = new Metering(figures);
  const audit = auditBeside(config.audit, { runtime, log, group, metrics: metrics.audit(namespace.name) });
  const relaying = { method: relayMethod(protocol), timers: runtime.timers };
  const relay: RelayService = new RelayService({
    ...relaying,
    leader: () => member.leader,
    identifyPeer: security.identifyPeer,
  });
  const member: Member = Member.start({
    ...{ runtime, log, serverId, config: namespace },
    configuredBy: config.configuredBy,
    suspicion: config.suspicion,
    dial: relayDialer({ ...relaying, serverId, addresses, dial: security.dial }),
    replicas: Object.keys(addresses).length,
    shard: shardOf(config),
    onCommitted: (entry, stats) => metering.committed(entry, stats),
    onDeposed: () => relay.closeAll(),
    onMark: (outcome) => figures.markShown(outcome),
    onRolledBack: () => {
      figures.halted();
      parts.onRolledBack();
    },
    onReplaced: parts.onReplaced,
    ...(audit === null ? {} : { whileLeading: audit.whileLeading }),
    onHalted: parts.onHalted,
  });
  const unobserve = [
    figures.observe(() => member.gauges() ?? NOTHING_YET),
    figures.observeSpace(() => member.space),
  ];
  return {
    ...{ member, relay, metrics },
    served: servedOf(parts, member),
    peers: new PeerCalls({ protocol, log, runtime, serverId, addresses, dial: security.dial }),
    stop: async () => {
      for (const end of unobserve) end();
      await member.stop();
      await audit?.close();
    },
  };
}

function servedOf({ config, namespace, runtime, log }: ReplicaParts, member: Member): Served {
  const { serverId, audit, configuredBy } = config;
  const replica = new GroupReplica({
    ...{ member, log, runtime, serverId },
    ...(audit === undefined ? {} : { auditSink: audit.sink }),
  });
  return { alias: namespace.name, replica, isConfigurable: configuredBy === 'admin' };
}

function shardOf({ buckets, mapVersion }: ServerConfig): () => Shard {
  const shard = { mapVersion, serves: bucketsIn(buckets) };
  return () => shard;
}
