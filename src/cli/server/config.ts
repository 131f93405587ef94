/** The configuration of one lock server of a group. */
import { isIP } from 'node:net';
import * as z from 'zod';
import { BUCKETS } from '../../api/limits.ts';
import { QUOTA_BYTES_DEFAULT } from '../../log/etcd/etcd-log.ts';
import { SUSPICION_DEFAULTS } from '../../server/member/suspicion.ts';
import { bucketRange } from '../bucket-ranges.ts';
import { address, duplicates } from '../config-file.ts';
import {
  adminTls,
  clientsTls,
  groupTls,
  isLoopback,
  operatorName,
  plaintextProblem,
  tokens,
} from '../security-config.ts';
import { auditConfig, auditConfigProblems, redactedAudit } from './audit.ts';

const serverId = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'a server id is a DNS label');

const OPERATORS_MAX = 100;

export const serverConfig = z.strictObject({
  /** Name of this replica within its group. */
  serverId,
  /** File with the one LockNamespace that the group serves. Relative to the configuration's own folder. */
  namespace: z.string().min(1),
  /**
   * `file`: a leader brings the LockNamespace of `namespace` into force. `admin`: only when the log has none yet; later ones come through
   * Admin.Configure, which is refused otherwise.
   */
  configuredBy: z.enum(['file', 'admin']).default('file'),
  /** The services for operators (Inspect, History, Admin). Applications must not have access to them. */
  admin: z
    .strictObject({
      /** Unix socket, open to the account of this process only. Relative to the configuration's own folder. */
      socket: z.string().min(1).optional(),
      /** At `listen.admin`: names in the certificates of those who may do everything, and of those who may only read. */
      administrators: z.array(operatorName).max(OPERATORS_MAX).default([]),
      readers: z.array(operatorName).max(OPERATORS_MAX).default([]),
    })
    .default({ administrators: [], readers: [] }),
  /** Every event to somewhere else, by whichever server leads (docs/AUDIT.md). */
  audit: auditConfig.optional(),
  etcd: z.strictObject({
    /** Client URLs of all members; the nearest first. */
    endpoints: z
      .array(z.url({ protocol: /^https?$/ }))
      .min(1)
      .max(9),
    /** Name in the certificates of its members, when that is not the host of each endpoint. Needed for https to an address. */
    serverName: z.string().min(1).max(253).optional(),
    /** Where the group's keys lie. Ends in a slash. */
    prefix: z.string().max(256).default('leasehold/'),
    /** Seconds after which a leader that is cut off from etcd is gone. etcd grants no less than one and a half election timeouts. */
    leaseTtlSeconds: z.int().min(2).max(60).default(5),
    /**
     * Milliseconds after which a call is given up and sent again, to the next member. A transaction that was on its way through an etcd
     * leader that died is answered no sooner.
     */
    callMs: z.int().min(100).max(10_000).default(1_000),
    /** What etcd was started with (`--quota-backend-bytes`), bytes. From 85 % of it on acquires are refused. */
    quotaBytes: z
      .int()
      .min(16 * 1024 ** 2)
      .max(64 * 1024 ** 3)
      .default(QUOTA_BYTES_DEFAULT),
  }),
  /** Where it listens: for clients, for the other replicas, for probes and metrics (HTTP); for operators, with mutual TLS. */
  listen: z.strictObject({ clients: address, relay: address, health: address, admin: address.optional() }),
  /** Where the relay of each replica is reached, this one's included, by server id. */
  peers: z.record(serverId, address),
  /** When a standby ends the leadership of a leader that seems dead (rule S7). */
  suspicion: z
    .strictObject({
      /** Milliseconds without an entry; entries come every 250 ms at least while sessions are open. */
      silenceMs: z.int().min(100).max(60_000).default(SUSPICION_DEFAULTS.silenceMs),
      /** Not more than one suspicion in so many milliseconds; doubles when they follow each other. */
      everyMs: z.int().min(100).max(3_600_000).default(SUSPICION_DEFAULTS.everyMs),
    })
    .default(SUSPICION_DEFAULTS),
  /** Without it connections are plain text, which is taken on loopback addresses only. Files are read again when they change. */
  tls: z
    .strictObject({
      group: groupTls.optional(),
      clients: clientsTls.optional(),
      admin: adminTls.optional(),
    })
    .default({}),
  /** How clients prove who they are. Without it nobody is asked, and the namespace's `consumers` are not checked. */
  tokens: tokens.optional(),
  /** True: plain text and unproven clients also where other machines reach this one. */
  insecure: z.boolean().default(false),
  /** Buckets of names that this group serves, when several groups share a namespace: `["0-2047"]`. */
  buckets: z
    .array(bucketRange)
    .min(1)
    .max(BUCKETS)
    .default([`0-${BUCKETS - 1}`]),
  /** Version of the shard map that says so. */
  mapVersion: z.int().min(1).default(1),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
});

export type ServerConfig = z.output<typeof serverConfig>;

/** Files that must be there at the start, by the keys that name them. */
export function serverFiles({ namespace, tls, tokens }: ServerConfig): Record<string, string | undefined> {
  const { group, clients, admin } = tls;
  return {
    namespace,
    'tls.group.ca': group?.ca,
    'tls.group.cert': group?.cert,
    'tls.group.key': group?.key,
    'tls.clients.cert': clients?.cert,
    'tls.clients.key': clients?.key,
    'tls.admin.ca': admin?.ca,
    'tls.admin.cert': admin?.cert,
    'tls.admin.key': admin?.key,
    'tokens.jwks': tokens?.jwks,
  };
}

/** What is wrong between the fields. */
export function serverConfigProblems(config: ServerConfig): readonly string[] {
  const { serverId, etcd, listen, peers } = config;
  const problems: string[] = [...auditConfigProblems(config.audit)];
  if (peers[serverId] === undefined) problems.push(`peers: ${serverId}, this server itself, is missing`);
  if (Object.keys(peers).length > 9) problems.push('peers: a group has at most 9 replicas');
  for (const twice of duplicates(Object.values(peers))) {
    problems.push(`peers: ${twice} is the address of two replicas`);
  }
  const listens = Object.values(listen).filter((one) => one !== undefined);
  for (const twice of duplicates(listens)) problems.push(`listen: ${twice} is used twice`);
  for (const twice of duplicates(etcd.endpoints))
    problems.push(`etcd.endpoints: ${withoutUser(twice)} is there twice`);
  for (const endpoint of etcd.endpoints) {
    if (withoutUser(endpoint) === new URL(endpoint).href) continue;
    problems.push(
      `etcd.endpoints: a user or password is not sent (${withoutUser(endpoint)}): etcd knows this server by its certificate, tls.group`,
    );
  }
  if (!etcd.prefix.endsWith('/')) problems.push('etcd.prefix: it ends in a slash');
  return [...problems, ...adminProblems(config), ...securityProblems(config)];
}

/** Whoever calls at `listen.admin` can take every lock away, so there is no way to leave the proof out. */
function adminProblems({ admin, listen, tls }: ServerConfig): readonly string[] {
  const named = [...admin.administrators, ...admin.readers];
  const problems = duplicates(named).map((twice) => `admin: ${twice} is listed twice`);
  if (listen.admin === undefined) {
    if (named.length > 0) problems.push('admin: names of operators are for listen.admin, which is missing');
    if (tls.admin !== undefined) problems.push('tls.admin: it is for listen.admin, which is missing');
    return problems;
  }
  if (tls.admin === undefined)
    problems.push('listen.admin: operators prove who they are by certificates: give tls.admin');
  if (named.length === 0)
    problems.push('listen.admin: nobody may call: list names under admin.administrators');
  return problems;
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

function securityProblems({ etcd, listen, peers, tls, tokens, insecure }: ServerConfig): readonly string[] {
  const problems: (string | null)[] = [];
  const https = etcd.endpoints.filter((endpoint) => endpoint.startsWith('https:'));
  if (https.length > 0 && tls.group === undefined)
    problems.push('etcd.endpoints: https needs tls.group: CA, certificate and key');
  if (https.some((endpoint) => isIP(hostOf(endpoint)) !== 0) && etcd.serverName === undefined)
    problems.push('etcd.serverName: https to an address needs the name that etcd’s certificates have');
  if (insecure) return problems.filter((problem) => problem !== null);
  if (tls.group === undefined) {
    const give = 'give tls.group';
    problems.push(plaintextProblem('listen.relay', listen.relay, give));
    for (const [id, peer] of Object.entries(peers)) {
      problems.push(plaintextProblem(`peers.${id}`, peer, give));
    }
  }
  for (const endpoint of etcd.endpoints) {
    const host = hostOf(endpoint);
    if (endpoint.startsWith('https:') || isLoopback(host)) continue;
    problems.push(`etcd.endpoints: ${host} is reached in plain text: use https, or say insecure: true`);
  }
  if (tls.clients === undefined) {
    problems.push(plaintextProblem('listen.clients', listen.clients, 'give tls.clients'));
  }
  if (tokens === undefined && plaintextProblem('', listen.clients, '') !== null) {
    problems.push(
      'tokens: clients on other machines must prove who they are: give tokens.jwks, or say insecure: true',
    );
  }
  return problems.filter((problem) => problem !== null);
}

function withoutUser(endpoint: string): string {
  const url = new URL(endpoint);
  if (url.username !== '') url.username = 'redacted';
  if (url.password !== '') url.password = 'redacted';
  return url.href;
}

/** For the log at the start: without user names and passwords of URLs. */
export function redacted(config: ServerConfig): object {
  const endpoints = config.etcd.endpoints.map(withoutUser);
  const audit = config.audit === undefined ? {} : { audit: redactedAudit(config.audit) };
  return { ...config, etcd: { ...config.etcd, endpoints }, ...audit };
}
