/** What a lock server trusts, while its files are replaced. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { namespaceConfig } from '../../../test/support/core.ts';
import { VirtualRuntime } from '../../../test/support/virtual-runtime.ts';
import { Authority } from '../group/authority.ts';
import { type ServerConfig, serverConfig } from './config.ts';
import { loadSecurity } from './security.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-security-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function config(): ServerConfig {
  return serverConfig.parse({
    serverId: 'a',
    namespace: 'payouts.yaml',
    etcd: { endpoints: ['https://127.0.0.1:2379'] },
    listen: { clients: '127.0.0.1:1', relay: '127.0.0.1:2', health: '127.0.0.1:3' },
    peers: { a: '127.0.0.1:2' },
    tls: { group: { ca: 'ca.crt', cert: 'a.crt', key: 'a.key' } },
  });
}

test('a server that waits for etcd dials it with the certificate that its files hold by then', async () => {
  const runtime = new VirtualRuntime();
  const authority = await Authority.make('test');
  const replace = async (): Promise<string> => {
    const { cert, key } = await authority.certify('a', { dns: ['a.payouts.payments'] });
    for (const [name, text] of Object.entries({
      'ca.crt': authority.certificate,
      'a.crt': cert,
      'a.key': key,
    }))
      writeFileSync(join(folder, name), text);
    return cert;
  };
  const first = await replace();
  const beside = (path: string): string => join(folder, path);
  const security = loadSecurity(config(), namespaceConfig(), { runtime, beside });
  const dialled = (): string => String({ ...security.etcd }.credentials?.certChain);
  expect(dialled()).toBe(first);
  const second = await replace();
  await runtime.pass(2_000);
  expect(dialled()).toBe(second);
  security.close();
});

test('authorities that are half written or damaged change nothing, and are refused at the start', async () => {
  const runtime = new VirtualRuntime();
  const [authority, next] = [await Authority.make('test'), await Authority.make('next')];
  const { cert, key } = await authority.certify('a', { dns: ['a.payouts.payments'] });
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  write('a.crt', cert);
  write('a.key', key);
  write('ca.crt', authority.certificate);
  const load = () =>
    loadSecurity(config(), namespaceConfig(), { runtime, beside: (path) => join(folder, path) });
  const security = load();
  const trusted = (): string => String({ ...security.etcd }.credentials?.rootCertificate);
  const both = `${authority.certificate}\n${next.certificate}`;
  const damaged = next.certificate.replace(/[A-Za-z0-9+/]{64}/, 'AAAA');
  for (const bad of ['', 'nothing', next.certificate.slice(0, 200), both.slice(0, -60), damaged]) {
    write('ca.crt', bad);
    await runtime.pass(2_000);
    expect(trusted()).toBe(authority.certificate);
    expect(load).toThrow(/tls\.group: .*ca\.crt(: certificate . of . is damaged| holds no certificate)/);
  }
  write('ca.crt', both);
  await runtime.pass(2_000);
  expect(trusted()).toBe(both);
  security.close();
});
