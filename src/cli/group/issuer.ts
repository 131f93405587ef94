/** `leasehold group issuer`: renews the token of the local group's sidecar before it ends, as the kubelet does for a pod. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Runtime } from '../../platform/runtime.ts';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { TokenIssuer } from './authority.ts';
import { ISSUER_KEY, POD_UID, TOKEN_FILE } from './security.ts';

/** Tokens live for an hour; the kubelet, too, does not wait for the end. */
const RENEW_MS = 10 * 60_000;
/** After one that failed; a token lasts for many of these. */
const RENEW_AGAIN_MS = 30_000;

export interface IssuerFlags {
  readonly dir: string;
  readonly account: string;
  readonly port: string;
}

export async function runIssuer({ dir, account, port }: IssuerFlags): Promise<void> {
  const issuer = new TokenIssuer(JSON.parse(readFileSync(join(dir, ISSUER_KEY), 'utf8')));
  const path = join(dir, TOKEN_FILE);
  const renew = async (): Promise<void> => {
    writeFileSync(`${path}.new`, await issuer.issue({ account, podUid: POD_UID }), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
  await keepRenewed(renew, createSystemRuntime({ logLevel: 'info' }));
  createServer((_, response) => response.end('{"health":"true"}')).listen(Number(port), '127.0.0.1');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(0));
}

/**
 * Now, and from then on for as long as the process lives, whatever goes wrong later: a disk that was full may have room again. Rejects when
 * the first one does.
 */
export async function keepRenewed(
  renew: () => Promise<void>,
  { timers, logger }: Pick<Runtime, 'timers' | 'logger'>,
): Promise<void> {
  const again = (): void => {
    renew().then(
      () => timers.after(RENEW_MS, again),
      (error: unknown) => {
        logger.error({ error }, 'the token of the sidecar is not renewed');
        timers.after(RENEW_AGAIN_MS, again);
      },
    );
  };
  await renew();
  timers.after(RENEW_MS, again);
}
