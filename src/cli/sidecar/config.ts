/** The configuration of a sidecar. */
import * as z from 'zod';
import { formatDuration, parseDuration } from '../../api/duration.ts';
import { BUCKETS, HOLD_MS_MAX, HOLD_MS_MIN, TTL_MS_MAX, TTL_MS_MIN } from '../../api/limits.ts';
import { bucketRange } from '../bucket-ranges.ts';
import { address, duplicates, parseAddress } from '../config-file.ts';
import { plaintextProblem } from '../security-config.ts';

const alias = z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'an alias is a DNS label');
const duration = z
  .string()
  .refine((text) => parseDuration(text) !== null, 'a duration is whole numbers with units, as 30s or 1h30m');

const oneGroup = z.object({
  /** Client addresses of the replicas. */
  endpoints: z.array(address).min(1).max(9),
  /** Name in the certificates of the replicas, when it is not the host of the endpoint. */
  serverName: z.string().min(1).max(253).optional(),
});

const part = {
  /** Of the group, within its namespace. */
  name: alias,
  /** What the shard map gives it, as `["0-2047"]`. A group that does not serve a name says so, and the others are asked. */
  buckets: z.array(bucketRange).min(1).max(BUCKETS),
};

export const sidecarConfig = z.strictObject({
  /** Port of the lock API on 127.0.0.1. */
  port: z.int().min(0).max(65_535).default(7070),
  /** Where probes and metrics are served (HTTP). Left out: on the port of the API. */
  health: address.optional(),
  /** Folder for what must outlive a restart of this process (rule A4). Relative to the configuration's own folder. */
  data: z.string().min(1),
  namespaces: z
    .array(
      z.strictObject({
        /** First part of the names of its locks. */
        alias,
        /** Its lock group, or several that share its names; one of the two is given. */
        ...oneGroup.partial().shape,
        groups: z
          .array(z.strictObject({ ...oneGroup.shape, ...part }))
          .min(2)
          .max(64)
          .optional(),
        /** TTL of sessions that ask for none. */
        ttl: duration.default('15s'),
        /** Longest hold of a session that lives by its stream alone and names none. */
        maxHold: duration.default('24h'),
      }),
    )
    .min(1)
    .max(100),
  /** Authority of the replicas' certificates, PEM. Left out: plain text, which is used on loopback addresses only. Read again when it changes. */
  ca: z.string().min(1).optional(),
  /** File with the ServiceAccount token that proves who this is. Read again when it changes. */
  token: z.string().min(1).optional(),
  /** True: plain text also to other machines. */
  insecure: z.boolean().default(false),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
});

export type SidecarConfig = z.output<typeof sidecarConfig>;

/** What is wrong between the fields. */
export function sidecarConfigProblems(config: SidecarConfig): readonly string[] {
  const { namespaces, port, health, ca, token, insecure } = config;
  const problems = duplicates(namespaces.map(({ alias }) => alias)).map(
    (twice) => `namespaces: the alias ${twice} is there twice`,
  );
  if (health !== undefined && parseAddress(health).port === port && port !== 0) {
    problems.push(`health: port ${port} is that of the lock API: leave health out, or give it another one`);
  }
  if (token !== undefined && ca === undefined && !insecure) {
    problems.push(
      'token: it is sent to whoever answers: give ca, so that lock servers prove who they are, or say insecure: true',
    );
  }
  for (const namespace of namespaces) {
    const { alias, groups, ttl, maxHold, serverName } = namespace;
    problems.push(...outside(`the ttl of ${alias}`, ttl, TTL_MS_MIN, TTL_MS_MAX));
    problems.push(...outside(`the maxHold of ${alias}`, maxHold, HOLD_MS_MIN, HOLD_MS_MAX));
    if (groups !== undefined && serverName !== undefined)
      problems.push(`namespaces: the serverName of ${alias} goes with each of its groups`);
    if ((namespace.endpoints === undefined) === (groups === undefined)) {
      problems.push(`namespaces: ${alias} needs either endpoints or groups`);
    }
    for (const twice of duplicates(groups?.map(({ name }) => name) ?? [])) {
      problems.push(`namespaces: ${alias} has the group ${twice} twice`);
    }
    const endpoints = groupsOf(namespace).flatMap((group) => group.endpoints);
    for (const twice of duplicates(endpoints)) problems.push(`namespaces: ${alias} names ${twice} twice`);
    if (ca !== undefined || insecure) continue;
    const plain = endpoints.map((endpoint) => plaintextProblem(`namespaces: ${alias}`, endpoint, 'give ca'));
    problems.push(...plain.filter((problem) => problem !== null));
  }
  return problems;
}

function outside(what: string, duration: string, minMs: number, maxMs: number): readonly string[] {
  const ms = parseDuration(duration) ?? 0;
  if (ms >= minMs && ms <= maxMs) return [];
  const bounds = `${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  return [`namespaces: ${what} is ${duration}, and may be ${bounds}`];
}

type NamespaceConfig = SidecarConfig['namespaces'][number];

/** The lock groups of a namespace; one alone has no name and serves everything. */
export function groupsOf({ groups, endpoints = [], serverName }: NamespaceConfig) {
  return groups ?? [{ name: null, buckets: [`0-${BUCKETS - 1}`], endpoints, serverName }];
}
