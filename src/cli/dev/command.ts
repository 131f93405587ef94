/**
 * The `dev` sub-command: flags and help.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { API_PORT_DEFAULT } from '../../api/limits.ts';
import type { LogLevel } from '../../platform/system-runtime.ts';
import { DATA_FOLDER_DEFAULT } from '../conventions.ts';
import { wholeNumber } from '../options.ts';
import type { DevFlags } from './dev.ts';

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const satisfies readonly LogLevel[];

export function devCommand(): Command {
  return new Command('dev')
    .description('Serve the lock API on localhost from one process, configured by LockNamespace manifests.')
    .requiredOption('-f, --filename <path>', 'manifest file or folder; may be repeated', collect)
    .option('-p, --port <number>', 'port on 127.0.0.1 (0 = any free one)', parsePort, API_PORT_DEFAULT)
    .option(
      '-d, --data <folder>',
      'where grants are kept; delete it to start from nothing',
      DATA_FOLDER_DEFAULT,
    )
    .addOption(
      new Option('-o, --output <format>', 'json: one JSON line when it serves, for scripts')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addOption(
      new Option('--log-level <level>', 'what is logged to stderr').choices(LOG_LEVELS).default('warn'),
    )
    .addHelpText('after', HELP)
    .action(async (flags: DevFlags) => {
      const { runDev } = await import('./dev.ts');
      await runDev(flags);
    });
}

const HELP = `
Every LockNamespace in the manifests is served under its name as alias: lock "merchant-1" of
the LockNamespace "payouts" is payouts/merchant-1, in a URL payouts%2Fmerchant-1.
Edit a manifest and it is reloaded; an invalid one is refused and the old one stays in force.
Grants survive the end of the process, also kill -9.

Examples:
  leasehold dev -f config/samples
  leasehold dev -f locks.yaml --port 0 --data /tmp/locks
`;

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

function parsePort(value: string): number {
  const port = wholeNumber(value);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new InvalidArgumentError('a port is a number from 0 to 65535');
  }
  return port;
}
