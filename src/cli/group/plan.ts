/** What a group on one machine consists of: its processes with their programs, arguments and files. */
import { join } from 'node:path';
import { stringify } from 'yaml';
import { CLIENTS_CA, memberFiles, OPERATOR_NAME, TOKEN_FILE } from './security.ts';

export const MEMBERS = ['a', 'b', 'c'] as const;

export type ProcessKind = 'etcd' | 'issuer' | 'server' | 'sidecar';

export interface PlannedProcess {
  readonly name: string;
  readonly kind: ProcessKind;
  readonly program: string;
  readonly args: readonly string[];
  /** Where what it prints goes. */
  readonly log: string;
  /** Where it says whether it serves. */
  readonly healthUrl: string;
  /** Of a lock server: where it serves operators, on this machine and over TLS. */
  readonly adminSocket?: string;
  readonly adminEndpoint?: string;
}

export interface GroupPlan {
  readonly alias: string;
  /** Client addresses of the lock servers. */
  readonly endpoints: readonly string[];
  readonly etcdEndpoints: readonly string[];
  readonly etcdPrefix: string;
  readonly apiUrl: string;
  /** Whose token its sidecar has; null: all of it is plain text, and nobody proves anything. */
  readonly account: string | null;
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
  /** Whose token the sidecar gets, and the group's name in certificates, whose files must be there; left out: plain text. */
  readonly security?: { readonly account: string; readonly groupName: string };
  readonly etcdFlags?: readonly string[];
  /** Merged into the configuration of each lock server. */
  readonly server?: Readonly<Record<string, unknown>>;
  /** Where each lock server exports its audit; `name` of its member. */
  readonly audit?: (name: string) => object;
  readonly leaseTtlSeconds?: number;
}

const ETCD_PREFIX = 'leasehold/';
/** For each member: etcd clients, etcd peers, etcd's health, lock clients, relay, health, operators. */
const PORTS_PER_MEMBER = 7;
/** How many free ports `planGroup` wants: for the members, the sidecar and the issuer. */
export const PORTS_NEEDED = MEMBERS.length * PORTS_PER_MEMBER + 2;

interface MemberPorts {
  readonly name: (typeof MEMBERS)[number];
  readonly etcdClients: string;
  readonly etcdPeers: string;
  readonly etcdHealth: string;
  readonly clients: string;
  readonly relay: string;
  readonly health: string;
  readonly admin: string;
}

export function planGroup(
  options: PlanOptions,
  ports: readonly number[],
): { readonly plan: GroupPlan; readonly files: readonly PlannedFile[] } {
  const members = MEMBERS.map((name, at) => portsOf(name, ports.slice(at * PORTS_PER_MEMBER)));
  const port = ports[PORTS_NEEDED - 1] as number;
  const issuerPort = ports[PORTS_NEEDED - 2] as number;
  const { folder, alias, manifest, security } = options;
  const endpoints = members.map(({ clients }) => clients);
  const sidecar = {
    port,
    data: 'sidecar',
    ...(security === undefined ? {} : { ca: CLIENTS_CA, token: TOKEN_FILE }),
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
    ...(security === undefined ? [] : [issuerProcess(security.account, issuerPort, options)]),
    ...members.map(({ name, health, admin }) => ({
      ...ownProcess('server', `server-${name}`, `http://${health}/status`, options),
      adminSocket: join(folder, adminSocket(name)),
      ...(security === undefined ? {} : { adminEndpoint: admin }),
    })),
    ownProcess('sidecar', 'sidecar', `${apiUrl}/readyz`, options),
  ];
  const etcdEndpoints = members.map(({ etcdClients }) => `${schemeOf(options)}://${etcdClients}`);
  const account = security?.account ?? null;
  const plan = { alias, endpoints, etcdEndpoints, etcdPrefix: ETCD_PREFIX, apiUrl, account, processes };
  return { plan, files };
}

function portsOf(name: MemberPorts['name'], ports: readonly number[]): MemberPorts {
  const at = (place: number): string => `127.0.0.1:${ports[place]}`;
  return {
    name,
    etcdClients: at(0),
    etcdPeers: at(1),
    etcdHealth: at(2),
    clients: at(3),
    relay: at(4),
    health: at(5),
    admin: at(6),
  };
}

function schemeOf({ security }: PlanOptions): 'http' | 'https' {
  return security === undefined ? 'http' : 'https';
}

function adminSocket(name: string): string {
  return `server-${name}.sock`;
}

function serverFile(own: MemberPorts, members: readonly MemberPorts[], options: PlanOptions): object {
  const { server = {}, leaseTtlSeconds = 5, security } = options;
  const { group, clients, admin, jwks } = memberFiles(own.name);
  // Its own etcd member first: the nearest.
  const etcds = [own, ...members.filter((member) => member !== own)];
  return {
    serverId: own.name,
    namespace: 'namespace.yaml',
    admin: {
      socket: adminSocket(own.name),
      ...(security === undefined ? {} : { administrators: [OPERATOR_NAME] }),
    },
    etcd: {
      endpoints: etcds.map(({ etcdClients }) => `${schemeOf(options)}://${etcdClients}`),
      prefix: ETCD_PREFIX,
      leaseTtlSeconds,
      ...(security === undefined ? {} : { serverName: 'localhost' }),
    },
    listen: {
      clients: own.clients,
      relay: own.relay,
      health: own.health,
      ...(security === undefined ? {} : { admin: own.admin }),
    },
    peers: Object.fromEntries(members.map(({ name, relay }) => [name, relay])),
    ...(security === undefined
      ? {}
      : { tls: { group: { ...group, name: security.groupName }, clients, admin }, tokens: { jwks } }),
    ...(options.audit === undefined ? {} : { audit: options.audit(own.name) }),
    ...server,
  };
}

function etcdProcess(
  { name, etcdClients, etcdPeers, etcdHealth }: MemberPorts,
  members: readonly MemberPorts[],
  options: PlanOptions,
): PlannedProcess {
  const { folder, etcd, etcdFlags = [] } = options;
  const scheme = schemeOf(options);
  const clients = `${scheme}://${etcdClients}`;
  const peers = `${scheme}://${etcdPeers}`;
  const cluster = members.map((member) => `${member.name}=${scheme}://${member.etcdPeers}`).join(',');
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
      // Health for people and probes, in plain text: whoever asks for it has no certificate.
      `--listen-metrics-urls=http://${etcdHealth}`,
      // What the members have compacted is compared (case G16). Not InitialCorruptCheck: members that start together after a loss of power
      // wait seven seconds for each other in vain, and the holders' belief ends meanwhile; the lock servers compare them instead.
      '--feature-gates=CompactHashCheck=true',
      ...(scheme === 'https' ? etcdTls(name, folder) : []),
      ...etcdFlags,
    ],
    log: join(folder, `etcd-${name}.log`),
    healthUrl: `http://${etcdHealth}/health`,
  };
}

/** Nobody without a certificate of the group reads or writes in etcd. It reads replaced files by itself. */
function etcdTls(name: string, folder: string): readonly string[] {
  const { ca, cert, key } = memberFiles(name).group;
  return ['', 'peer-'].flatMap((kind) => [
    `--${kind}cert-file=${join(folder, cert)}`,
    `--${kind}key-file=${join(folder, key)}`,
    `--${kind}trusted-ca-file=${join(folder, ca)}`,
    `--${kind}client-cert-auth`,
  ]);
}

function issuerProcess(
  account: string,
  port: number,
  { folder, node, leasehold }: PlanOptions,
): PlannedProcess {
  const args = ['group', 'issuer', '--dir', folder, '--account', account, '--port', String(port)];
  return {
    name: 'issuer',
    kind: 'issuer',
    program: node,
    args: [leasehold, ...args],
    log: join(folder, 'issuer.log'),
    healthUrl: `http://127.0.0.1:${port}/health`,
  };
}

/**
 * Node's flags for a lock server. What is under way lives as long as an append takes; a young generation that is full sooner copies it again
 * and again (MiB; Node's default is 16).
 */
const SERVER_NODE_FLAGS = ['--max-semi-space-size=48'];

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
    args: [
      ...(kind === 'server' ? SERVER_NODE_FLAGS : []),
      leasehold,
      kind,
      '--config',
      join(folder, `${name}.yaml`),
    ],
    log: join(folder, `${name}.log`),
    healthUrl,
  };
}
