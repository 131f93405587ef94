/** Where a lock server exports its audit: the part of its configuration, and the sink made of it. */
import { createWriteStream, fstatSync } from 'node:fs';
import type { Writable } from 'node:stream';
import * as z from 'zod';
import type { LockLog } from '../../log/port.ts';
import type { AuditMetrics } from '../../platform/metrics.ts';
import { pause } from '../../platform/pause.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { AuditExporter } from '../../server/audit/exporter.ts';
import { FileSink } from '../../server/audit/file-sink.ts';
import { HttpSink } from '../../server/audit/http-sink.ts';
import { PostgresSink } from '../../server/audit/postgresql-sink.ts';
import type { AuditSink } from '../../server/audit/sink.ts';
import { StreamSink } from '../../server/audit/stream-sink.ts';
import type { Leader } from '../../server/leader/leader.ts';

const timeoutMs = z.int().min(100).max(300_000).default(10_000);
/** Goes into SQL as it is. */
const table = z
  .string()
  .regex(/^[a-z_][a-z0-9_]{0,62}(\.[a-z_][a-z0-9_]{0,62})?$/, 'a table is a lower-case name, or schema.name');

/** What HTTP takes; anything else would be refused at each request, by an error that repeats it. The words repeat nothing. */
const headerValue = z
  .string({ error: 'the value of a header is a text' })
  .regex(/^[\t\x20-\x7e\x80-\xff]*[\r\n]*$/, 'the value of a header is one line of Latin-1');

/** One sink for each server; all servers of a group have the same kind, since any of them may lead. */
export const auditConfig = z.discriminatedUnion('sink', [
  z.strictObject({ sink: z.literal('stdout') }),
  z.strictObject({
    sink: z.literal('file'),
    /** Relative to the configuration's own folder. Rotate it by moving it away. */
    path: z.string().min(1),
    /** `batch`: what counts as exported is on the disk. */
    fsync: z.enum(['batch', 'never']).default('batch'),
  }),
  z.strictObject({
    sink: z.literal('http'),
    url: z.url({ protocol: /^https?$/ }),
    /** With each request, as `authorization`. */
    headers: z.record(z.string().regex(/^[A-Za-z0-9-]+$/), headerValue).default({}),
    timeoutMs,
  }),
  z.strictObject({
    sink: z.literal('postgresql'),
    /** `postgresql://user@host:5432/database`; a password may stand in it, or in PGPASSWORD. */
    url: z.url({ protocol: /^postgres(ql)?$/ }),
    table: table.default('leasehold_audit'),
    /** False: somebody has made the table (docs/AUDIT.md), and this account may only insert. */
    createTable: z.boolean().default(true),
    timeoutMs,
  }),
]);

export type AuditConfig = z.output<typeof auditConfig>;

/** Headers that the exporter sets itself. */
const OWN_HEADERS = /^(content-type|content-length|host|leasehold-.*)$/i;

export function auditConfigProblems(config: AuditConfig | undefined): readonly string[] {
  if (config?.sink !== 'http') return [];
  const problems = Object.keys(config.headers)
    .filter((name) => OWN_HEADERS.test(name))
    .map((name) => `audit.headers: ${name} is set by the exporter`);
  const { username, password } = new URL(config.url);
  if (username !== '' || password !== '') {
    problems.push('audit.url: a user or password in it is not sent; write an authorization header');
  }
  return problems;
}

/** Node.js writes into a file that is its standard output in its own thread, and a slow disk would make the leader wait. */
function standardOutput(): Writable {
  const { fd } = process.stdout;
  return fstatSync(fd).isFile() ? createWriteStream('', { fd, autoClose: false }) : process.stdout;
}

function makeAuditSink(config: AuditConfig, { clock, timers }: Runtime): AuditSink {
  switch (config.sink) {
    case 'stdout':
      return new StreamSink(standardOutput());
    case 'file':
      return new FileSink(config);
    case 'http':
      return new HttpSink({ ...config, clock, timers });
    case 'postgresql':
      return new PostgresSink(config);
  }
}

/** For the log at the start: without secrets. */
export function redactedAudit(config: AuditConfig): object {
  switch (config.sink) {
    case 'stdout':
    case 'file':
      return config;
    case 'http': {
      const headers = Object.keys(config.headers).map((name) => [name, 'redacted'] as const);
      return { ...config, url: redactedUrl(config.url), headers: Object.fromEntries(headers) };
    }
    case 'postgresql':
      return { ...config, url: redactedUrl(config.url) };
  }
}

/** Whatever stands in the query may be a secret. */
function redactedUrl(text: string): string {
  const url = new URL(text);
  if (url.username !== '') url.username = 'redacted';
  if (url.password !== '') url.password = 'redacted';
  for (const name of [...url.searchParams.keys()]) url.searchParams.set(name, 'redacted');
  return url.href;
}

/** A sink that hangs, like a file on a lost network disk, does not hold up the end of its server. */
const CLOSE_MS_MAX = 1_000;

interface AuditPorts {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly group: string;
  readonly metrics: AuditMetrics;
}

export interface AuditBeside {
  /** Begins to export; the answer ends it. */
  whileLeading(leader: Leader): () => void;
  close(): Promise<void>;
}

/** The exporter of a lock server, for as long as it leads. Null: it has none. */
export function auditBeside(config: AuditConfig | undefined, ports: AuditPorts): AuditBeside | null {
  if (config === undefined) return null;
  const sink = makeAuditSink(config, ports.runtime);
  return {
    whileLeading: (leader) => {
      const head = (): number => leader.position.index;
      const exporter = new AuditExporter({ ...ports, leadership: leader.leadership, sink, head });
      return () => exporter.stop();
    },
    close: () => Promise.race([sink.close(), pause(ports.runtime.timers, CLOSE_MS_MAX)]),
  };
}
