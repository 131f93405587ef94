/** The `server` sub-command: flags and help. */
import { Command } from 'commander';

export function serverCommand(): Command {
  return new Command('server')
    .description('Run one lock server of a group, on an etcd cluster.')
    .requiredOption('-c, --config <file>', 'its configuration, YAML or JSON')
    .addHelpText('after', HELP)
    .action(async (flags: { readonly config: string }) => {
      const { runServer } = await import('./server.ts');
      await runServer(flags.config);
    });
}

const HELP = `
One of the servers of a group leads, the others follow its log and take over when it is gone.
Clients may connect to any of them. SIGTERM hands over and ends it.

Example of a configuration:
  serverId: a
  namespace: payouts.yaml              # a LockNamespace; beside this file
  etcd: {endpoints: ["http://127.0.0.1:2379"], leaseTtlSeconds: 5}
  admin: {socket: server-a.sock}       # for operators; open to the account of the server only
  listen: {clients: "127.0.0.1:7100", relay: "127.0.0.1:7200", health: "127.0.0.1:7300"}
  peers: {a: "127.0.0.1:7200", b: "127.0.0.1:7201", c: "127.0.0.1:7202"}

"leasehold group up" starts a whole group on this machine. There is no TLS between the processes yet,
and every client is taken for the same one: keep it on loopback.

Examples:
  leasehold server --config server-a.yaml

Exit codes: 0 ended by a signal, 1 its log contradicts itself or this program, 123 a port is taken,
125 the configuration is not valid.
`;
