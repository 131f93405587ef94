/**
 * `leasehold dev`, from its flags to the end of its process: what is printed, signals.
 */
import { LogInUseError } from '../../log/errors.ts';
import { findingsToJson, formatFindings } from '../../platform/manifests/format.ts';
import { createSystemRuntime, type LogLevel } from '../../platform/system-runtime.ts';
import { EXIT_UNAVAILABLE, EXIT_USAGE, EXIT_WRONG } from '../conventions.ts';
import { type Failure, UnavailableError } from '../errors.ts';
import { failureJson, failureOf } from '../output/outcome.ts';
import { onStopSignals } from '../stop-signals.ts';
import { type DevServer, ManifestsInvalid, type ReloadReport, startDev } from './dev-server.ts';

export interface DevFlags {
  readonly filename: readonly string[];
  readonly port: number;
  readonly data: string;
  readonly output: string;
  readonly logLevel: LogLevel;
}

export async function runDev(flags: DevFlags): Promise<void> {
  let server: DevServer | null = null;
  let isStopping = false;
  const stop = async (code: number): Promise<void> => {
    // Asked twice: whatever still waits is safe in the log.
    if (isStopping) process.exit(EXIT_UNAVAILABLE);
    isStopping = true;
    await server?.stop();
    process.exit(code);
  };
  try {
    server = await startDev({
      runtime: createSystemRuntime({ logLevel: flags.logLevel }),
      manifests: flags.filename,
      dataFolder: flags.data,
      port: flags.port,
      onReload: printReload,
      onFatal: (message) => {
        console.error(message);
        process.exit(EXIT_UNAVAILABLE);
      },
    });
  } catch (error) {
    return fail(error, flags);
  }
  onStopSignals(() => void stop(0));
  if (flags.output === 'json') console.log(JSON.stringify(describe(server, flags)));
  else printStart(server, flags);
}

/** What a script wants to know: `{url, data, namespaces: [{alias, namespace, name}]}`. */
function describe(server: DevServer, { data }: DevFlags): object {
  const namespaces = server
    .namespaces()
    .map(({ alias, config: { namespace, name } }) => ({ alias, namespace, name }));
  return { url: server.url, data, namespaces };
}

async function fail(error: unknown, { output }: DevFlags): Promise<never> {
  const failure =
    error instanceof ManifestsInvalid ? invalidManifests(error) : await failureOf(explained(error));
  if (output === 'json') console.log(failureJson(failure));
  console.error(failure.shown ?? failure.message);
  process.exit(failure.exitCode === EXIT_WRONG ? EXIT_UNAVAILABLE : failure.exitCode);
}

/** With -o json all findings are in `problems`. */
function invalidManifests({ errors }: ManifestsInvalid): Failure {
  const message = `${errors.length} problem(s) in the manifests; nothing is served until they are mended`;
  const shown = `${formatFindings(errors)}\n\n${errors.length} problem(s); nothing is served until they are mended.`;
  const problems: unknown = JSON.parse(findingsToJson(errors));
  return { code: 'INVALID', message, shown, exitCode: EXIT_USAGE, details: { problems } };
}

function explained(error: unknown): unknown {
  if (!(error instanceof LogInUseError)) return error;
  return new UnavailableError(`${error.message} (--data) and another port (--port)`, { cause: error });
}

function printStart(server: DevServer, { data }: DevFlags): void {
  if (server.notices.length > 0) console.log(formatFindings(server.notices));
  const namespaces = server.namespaces();
  const first = namespaces[0]?.alias ?? 'locks';
  console.log(
    `Leasehold serves the lock API on ${server.url}   (data: ${data}, API: ${server.url}/v1/openapi.json)\n`,
  );
  const width = Math.max(...namespaces.map(({ alias }) => alias.length));
  for (const { alias, config, replica } of namespaces) {
    const { held } = replica.status();
    const notes = `${config.safetyClass}, ttl ${config.ttlMs / 1000} s, ${held} held`;
    console.log(`  ${alias.padEnd(width)}   (LockNamespace ${config.namespace}/${config.name}: ${notes})`);
  }
  console.log('\nOne replica each, whatever the manifests say; no SafetyApproval is needed here.');
  console.log(`
Try it:
  curl -s -X POST ${server.url}/v1/locks/${first}%2Fmy-lock/acquire -d '{"client":"me","ttl_s":60}'
  curl -s ${server.url}/v1/locks/${first}%2Fmy-lock
  curl -s "${server.url}/v1/locks?prefix=${first}/"
`);
}

function printReload(report: ReloadReport): void {
  if (report.kind === 'refused') {
    console.error(formatFindings(report.errors));
    console.error('The manifests changed but are not valid; what was in force stays in force.');
    return;
  }
  if (report.kind === 'failed') {
    console.error(`The manifests could not be put into force: ${String(report.error)}`);
    console.error('What was served goes on; save a manifest again to retry.');
    return;
  }
  const { added, changed, removed } = report;
  if (added.length + changed.length + removed.length === 0) {
    console.log('Manifests reloaded: they say what is in force already.');
    return;
  }
  console.log(
    `Manifests reloaded: added [${added.join(', ')}], changed [${changed.join(', ')}], removed [${removed.join(', ')}].`,
  );
}
