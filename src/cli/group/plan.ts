/** What a group on one machine consists of: its processes with their programs, arguments and files. */
import { join } from 'node:path';
import { stringify } from 'yaml';

export const MEMBERS = ['a', 'b', 'c'] as const;

export type ProcessKind = 'etcd' | 'server' | 'sidecar';

export interface PlannedProcess {
  readonly name: string;
  readonly kind: ProcessKind;
  readonly program: string;
  readonly args: readonly string[];
  /** Where what it prints goes. */
  readonly log: string;
  /** Where it says whether it serves. */
  readonly healthUrl: string;
  /** Of a lock server: where it serves operators. */
  readonly adminSocket?: string;
}

export interface GroupPlan {
  readonly alias: string;
  /** Client addresses of the lock servers. */
  readonly endpoints: readonly string[];
  readonly etcdEndpoints: readonly string[];
  readonly etcdPrefix: string;
  readonly apiUrl: string;
  readonly processes: readonly PlannedProcess[];
}

/** In the group's folder: what it consists of, and which of its processes were started. */
export const GROUP_STATE_FILE = 'group.json';

/** A process that was started: its id, and when it began, so that another one under the same id is left alone. */
export interface Started {
  readonly pid: number;
  readonly startedAt: string;
}

export interface GroupState {
  readonly format: 1;
  readonly plan: GroupPlan;
  readonly started: Readonly<Record<string, Started>>;
}

/** A file to be written before its processes start. */
export interface PlannedFile {
  readonly path: string;
  readonly text: string;
}

export interface PlanOptions {
  /** Absolute. */
  readonly folder: string;
  /** Name of the LockNamespace in `manifest`. */
  readonly alias: string;
  readonly manifest: string;
  readonly etcd: string;
  /** Node, and the program that has these sub-commands. */
  readonly node: string;
  readonly leasehold: string;
  readonly etcdFlags?: readonly string[];
  /** Merged into the configuration of each lock server. */
  readonly server?: Readonly<Record<string, unknown>>;
  readonly leaseTtlSeconds?: number;
}

const ETCD_PREFIX = 'leasehold/';
/** For each member: etcd clients, etcd peers, lock clients, relay, health. */
const PORTS_PER_MEMBER = 5;
/** How many free ports `planGroup` wants. */
export const PORTS_NEEDED = MEMBERS.length * PORTS_PER_MEMBER + 1;

interface MemberPorts {
  readonly name: (typeof MEMBERS)[number];
  readonly etcdClients: string;
  readonly etcdPeers: string;
  readonly clients: string;
  readonly relay: string;
  readonly health: string;
}

export function planGroup(
  options: PlanOptions,
  ports: readonly number[],
): { readonly plan: GroupPlan; readonly files: readonly PlannedFile[] } {
  const members = MEMBERS.map((name, at) => portsOf(name, ports.slice(at * PORTS_PER_MEMBER)));
  const port = ports[PORTS_NEEDED - 1] as number;
  const { folder, alias, manifest } = options;
  const endpoints = members.map(({ clients }) => clients);
  const sidecar = {
    port,
    data: 'sidecar',
    namespaces: [{ alias, endpoints }],
  };
  const apiUrl = `http://127.0.0.1:${port}`;
  const files = [
    { path: join(folder, 'namespace.yaml'), text: manifest },
    ...members.map((member) => ({
      path: join(folder, `server-${member.name}.yaml`),
      text: stringify(serverFile(member, members, options)),
    })),
    { path: join(folder, 'sidecar.yaml'), text: stringify(sidecar) },
  ];
  const processes = [
    ...members.map((member) => etcdProcess(member, members, options)),
    ...members.map(({ name, health }) => ({
      ...ownProcess('server', `server-${name}`, `http://${health}/status`, options),
      adminSocket: join(folder, adminSocket(name)),
    })),
    ownProcess('sidecar', 'sidecar', `${apiUrl}/readyz`, options),
  ];
  const etcdEndpoints = members.map(({ etcdClients }) => `http://${etcdClients}`);
  return { plan: { alias, endpoints, etcdEndpoints, etcdPrefix: ETCD_PREFIX, apiUrl, processes }, files };
}

function portsOf(name: MemberPorts['name'], ports: readonly number[]): MemberPorts {
  const at = (place: number): string => `127.0.0.1:${ports[place]}`;
  return {
    name,
    etcdClients: at(0),
    etcdPeers: at(1),
    clients: at(2),
    relay: at(3),
    health: at(4),
  };
}

function adminSocket(name: string): string {
  return `server-${name}.sock`;
}

function serverFile(
  own: MemberPorts,
  members: readonly MemberPorts[],
  { server = {}, leaseTtlSeconds = 5 }: PlanOptions,
): object {
  // Its own etcd member first: the nearest.
  const etcds = [own, ...members.filter((member) => member !== own)];
  return {
    serverId: own.name,
    namespace: 'namespace.yaml',
    admin: { socket: adminSocket(own.name) },
    etcd: {
      endpoints: etcds.map(({ etcdClients }) => `http://${etcdClients}`),
      prefix: ETCD_PREFIX,
      leaseTtlSeconds,
    },
    listen: { clients: own.clients, relay: own.relay, health: own.health },
    peers: Object.fromEntries(members.map(({ name, relay }) => [name, relay])),
    ...server,
  };
}

function etcdProcess(
  { name, etcdClients, etcdPeers }: MemberPorts,
  members: readonly MemberPorts[],
  { folder, etcd, etcdFlags = [] }: PlanOptions,
): PlannedProcess {
  const clients = `http://${etcdClients}`;
  const peers = `http://${etcdPeers}`;
  const cluster = members.map((member) => `${member.name}=http://${member.etcdPeers}`).join(',');
  return {
    name: `etcd-${name}`,
    kind: 'etcd',
    program: etcd,
    args: [
      `--name=${name}`,
      `--data-dir=${join(folder, `etcd-${name}`)}`,
      '--log-level=warn',
      `--listen-client-urls=${clients}`,
      `--advertise-client-urls=${clients}`,
      `--listen-peer-urls=${peers}`,
      `--initial-advertise-peer-urls=${peers}`,
      `--initial-cluster=${cluster}`,
      ...etcdFlags,
    ],
    log: join(folder, `etcd-${name}.log`),
    healthUrl: `${clients}/health`,
  };
}

function ownProcess(
  kind: 'server' | 'sidecar',
  name: string,
  healthUrl: string,
  { folder, node, leasehold }: PlanOptions,
): PlannedProcess {
  return {
    name,
    kind,
    program: node,
    args: [leasehold, kind, '--config', join(folder, `${name}.yaml`)],
    log: join(folder, `${name}.log`),
    healthUrl,
  };
}
