/**
 * `leasehold/fencing`: small functions by which a resource refuses a holder whose lease is over (docs/FENCING.md).
 * PostgreSQL, HTTP services, etcd. They need no package, and run on Node 20.
 */
export {
  type EtcdGateway,
  type EtcdOperation,
  type EtcdTransaction,
  type EtcdWrite,
  fencedRevision,
  fencedTransaction,
  fencedWrite,
} from './etcd.ts';
export {
  type Fenced,
  type FencingOptions,
  fencedHandler,
  fencing,
  type NodeRequest,
  type NodeResponse,
  TOKEN_HEADER,
  tokenHeader,
} from './http.ts';
export {
  FENCE_TABLE,
  type Fence,
  fencedUpdate,
  fenceTableSql,
  type ReportingFence,
  type RowUpdate,
  raiseFence,
  raiseFenceSql,
  readFence,
  type SqlClient,
  withFence,
} from './postgresql.ts';
export type { TableName } from './sql-text.ts';
export { type StaleReporterOptions, staleReporter } from './stale-reporter.ts';
export { type StaleReport, type StaleToken, StaleTokenError } from './stale-token.ts';
export { type FenceStore, MemoryFenceStore, PostgresFenceStore } from './store.ts';
export {
  NO_TOKEN_SQLSTATE,
  type RowFence,
  rowFenceSql,
  STALE_SQLSTATE,
  staleTokenFrom,
  type TableFence,
  TOKEN_SETTING,
  tableFenceSql,
} from './triggers.ts';
