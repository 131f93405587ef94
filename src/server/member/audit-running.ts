/** The audit cursor belongs to an exporter that runs, and is not given up. */
export class AuditRunningError extends Error {
  constructor(serverId: string, sink: string) {
    super(
      `server ${serverId} leads and exports the audit (${sink}): take the section "audit" out of the configuration of all servers first, and restart them`,
    );
    this.name = 'AuditRunningError';
  }
}
