/** Options and arguments that several commands share, and how their texts are read. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseDuration } from '../api/duration.ts';
import { API_URL_DEFAULT, TOKEN_MAX } from '../api/limits.ts';
import { DATA_FOLDER_DEFAULT } from './conventions.ts';

export type OutputFormat = 'table' | 'json';

export function outputOption(): Option {
  return new Option('-o, --output <format>', 'table, or json for programs')
    .choices(['table', 'json'])
    .default('table');
}

/** Where the HTTP API of a sidecar or of `leasehold dev` is. */
export function urlOption(): Option {
  return new Option('--url <url>', 'the lock API').env('LEASEHOLD_URL').default(API_URL_DEFAULT);
}

/** Where a lock server serves operators: what the options of `withAdminOptions` say. */
export interface AdminTarget {
  readonly data: string;
  readonly adminSocket?: string;
  /** Address; with the three files that prove who calls, and whom. */
  readonly endpoint?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
}

/** For commands that talk to a lock server as an operator does. */
export function withAdminOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '-d, --data <folder>',
        'data folder of the running leasehold dev (or of a group in it), or folder of a group of "leasehold group up"',
      ).default(DATA_FOLDER_DEFAULT),
    )
    .addOption(
      new Option('--admin-socket <path>', 'instead: the socket that the configuration of a lock server names')
        .env('LEASEHOLD_ADMIN_SOCKET')
        .conflicts('endpoint'),
    )
    .addOption(
      new Option(
        '--endpoint <host:port>',
        'instead: "listen.admin" of a lock server elsewhere, over mutual TLS with the next three',
      ).env('LEASEHOLD_ADMIN_ENDPOINT'),
    )
    .addOption(
      new Option('--ca <file>', 'authority of its certificate, PEM; with --endpoint').env(
        'LEASEHOLD_ADMIN_CA',
      ),
    )
    .addOption(
      new Option('--cert <file>', 'your certificate as an operator, PEM; with --endpoint').env(
        'LEASEHOLD_ADMIN_CERT',
      ),
    )
    .addOption(new Option('--key <file>', 'its key, PEM; with --endpoint').env('LEASEHOLD_ADMIN_KEY'))
    .addOption(
      new Option(
        '--server-name <name>',
        'name in its certificate, when that is not the host of --endpoint',
      ).env('LEASEHOLD_ADMIN_SERVER_NAME'),
    );
}

/** Digits and nothing else; NaN otherwise. JavaScript takes an empty text for 0, and `0x5`, `1e3` and rounded fractions for whole numbers. */
export function wholeNumber(value: string): number {
  return /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
}

/** Parses an option that is an index of the log. */
export function parseIndex(value: string): number {
  const index = wholeNumber(value);
  if (Number.isSafeInteger(index) && index >= 1) return index;
  throw new InvalidArgumentError('an index is a whole number from 1 on');
}

/** Parses a duration as manifests write it, to milliseconds. */
export function parseMs(value: string): number {
  const durationMs = parseDuration(value);
  if (durationMs !== null) return durationMs;
  throw new InvalidArgumentError('a duration is whole numbers with units, as 30s, 500ms or 1h30m');
}

export function parseToken(value: string): number {
  const token = wholeNumber(value);
  if (Number.isSafeInteger(token) && token >= 1 && token <= TOKEN_MAX) return token;
  throw new InvalidArgumentError('a token is a whole number; "leasehold describe NAME" shows it');
}

/** Parses how many permits of a semaphore are wanted. */
function parsePermits(value: string): number {
  const permits = wholeNumber(value);
  if (Number.isSafeInteger(permits) && permits >= 1) return permits;
  throw new InvalidArgumentError('a number of permits is a whole number from 1 on');
}

/** What `--shared` and `--permits` mean in a request; neither: exclusive. */
export interface ModeFlags {
  readonly shared?: true;
  readonly permits?: number;
}

export function modeOf({ shared, permits }: ModeFlags) {
  if (permits !== undefined) return { mode: 'semaphore', permits } as const;
  return shared === true ? ({ mode: 'shared' } as const) : {};
}

export function modeOptions(): readonly Option[] {
  return [
    new Option('--shared', 'hold it together with other readers').conflicts('permits'),
    new Option('--permits <number>', 'so many permits of a semaphore').argParser(parsePermits),
  ];
}

/** Parses the full name of a lock, `<alias>/<rest>`. */
export function parseName(value: string): string {
  const slash = value.indexOf('/');
  if (slash > 0 && slash < value.length - 1) return value;
  throw new InvalidArgumentError('a lock is named <alias>/<name>, as payouts/merchant-1');
}

/** Of a command that runs from a configuration file. */
export interface ConfigFlags {
  readonly config: string;
  /** `path.to.key=value`, in the order given. */
  readonly set: readonly string[];
}

/** An option that may be given more than once. */
export function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}
