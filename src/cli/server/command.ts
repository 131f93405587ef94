/** The `server` sub-command: flags and help. */
import { Command } from 'commander';
import { type ConfigFlags, collect } from '../options.ts';

export function serverCommand(): Command {
  return new Command('server')
    .description('Run one lock server of a group, on an etcd cluster.')
    .requiredOption('-c, --config <file>', 'its configuration, YAML or JSON')
    .option(
      '-s, --set <key=value>',
      'over the file: path.to.key=value, the value in YAML; again for more',
      collect,
      [],
    )
    .addHelpText('after', HELP)
    .action(async (flags: ConfigFlags) => {
      const { runServer } = await import('./server.ts');
      await runServer(flags);
    });
}

const HELP = `
One of the servers of a group leads, the others follow its log and take over when it is gone.
Clients may connect to any of them. SIGTERM (or SIGHUP) hands over and ends it.

Example of a configuration:
  serverId: a
  namespace: payouts.yaml              # a LockNamespace; beside this file, read again when it changes
  etcd: {endpoints: ["https://etcd-a:2379", "https://etcd-b:2379", "https://etcd-c:2379"]}
  admin: {socket: server-a.sock}       # for operators; open to the account of the server only
  audit: {sink: file, path: audit.ndjson}   # or stdout, http, postgresql: docs/AUDIT.md
  listen: {clients: "0.0.0.0:7100", relay: "0.0.0.0:7200", health: "0.0.0.0:7071"}
  peers: {a: "locks-a:7200", b: "locks-b:7200", c: "locks-c:7200"}
  tls:                                 # PEM files beside this file, read again when they change
    group: {ca: group-ca.crt, cert: a.crt, key: a.key}   # a.crt is for the DNS name a.<LockNamespace>.<namespace>
    clients: {cert: clients.crt, key: clients.key}
  tokens: {jwks: jwks.json, audience: leasehold, issuer: "https://kubernetes.default.svc"}

Without tls and tokens everything is plain text and nobody proves who they are: that is taken on loopback
addresses only, or with "insecure: true". "leasehold group up" makes a whole group, with certificates and tokens.

Examples:
  leasehold server --config server.yaml --set serverId=b --set logLevel=debug
  leasehold server --config server-a.yaml

Exit codes: 0 ended by a signal, 1 its log contradicts itself or this program, 123 a port is taken,
125 the configuration is not valid.
`;
