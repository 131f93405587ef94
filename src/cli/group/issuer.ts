/** `leasehold group issuer`: renews the token of the local group's sidecar before it ends, as the kubelet does for a pod. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createSystemRuntime } from '../../platform/system-runtime.ts';
import { TokenIssuer } from './authority.ts';
import { ISSUER_KEY, POD_UID, TOKEN_FILE } from './security.ts';

/** Tokens live for an hour; the kubelet, too, does not wait for the end. */
const RENEW_MS = 10 * 60_000;

export interface IssuerFlags {
  readonly dir: string;
  readonly account: string;
  readonly port: string;
}

export async function runIssuer({ dir, account, port }: IssuerFlags): Promise<void> {
  const { timers } = createSystemRuntime({ logLevel: 'info' });
  const issuer = new TokenIssuer(JSON.parse(readFileSync(join(dir, ISSUER_KEY), 'utf8')));
  const path = join(dir, TOKEN_FILE);
  const renew = async (): Promise<void> => {
    writeFileSync(`${path}.new`, await issuer.issue({ account, podUid: POD_UID }), { mode: 0o600 });
    renameSync(`${path}.new`, path);
    timers.after(RENEW_MS, () => void renew());
  };
  await renew();
  createServer((_, response) => response.end('{"health":"true"}')).listen(Number(port), '127.0.0.1');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(0));
}
