/** The `sidecar` sub-command: flags and help. */
import { Command } from 'commander';
import { type ConfigFlags, collect } from '../options.ts';

export function sidecarCommand(): Command {
  return new Command('sidecar')
    .description('Serve the lock API on localhost, against lock groups.')
    .requiredOption('-c, --config <file>', 'its configuration, YAML or JSON')
    .option(
      '-s, --set <key=value>',
      'over the file: path.to.key=value, the value in YAML; again for more',
      collect,
      [],
    )
    .addHelpText('after', HELP)
    .action(async (flags: ConfigFlags) => {
      const { runSidecar } = await import('./sidecar.ts');
      await runSidecar(flags);
    });
}

const HELP = `
Sessions go on over a restart: what it must know lies in its data folder.

Example of a configuration:
  port: 7070
  data: sidecar                        # beside this file
  ca: clients-ca.crt                   # who signs the lock servers' certificates; without it plain text, on loopback
  token: token                         # the projected ServiceAccount token; a new one is used as soon as it is there
  namespaces:
    - alias: payouts
      endpoints: ["locks-a:7100", "locks-b:7100", "locks-c:7100"]
    - alias: bookings                    # its names are spread over two groups, by bucket
      groups:
        - {name: one, buckets: ["0-2047"], endpoints: ["one-a:7100", "one-b:7100", "one-c:7100"]}
        - {name: two, buckets: ["2048-4095"], endpoints: ["two-a:7100", "two-b:7100", "two-c:7100"]}

Examples:
  leasehold sidecar --config sidecar.yaml --set port=7080
  leasehold sidecar --config sidecar.yaml

Exit codes: 0 ended by a signal, 123 the port is taken or the data folder in use, 125 the configuration
is not valid.
`;
