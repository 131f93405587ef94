/** A whole group with certificates and tokens, as `leasehold group up` makes it, and clients that prove themselves well or badly. */
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Metadata, type StatusObject } from '@grpc/grpc-js';
import { stringify } from 'yaml';
import { ensureEtcd } from '../../../scripts/etcd.mjs';
import type { AnswerBody, ClientRequestBody, SessionNotice } from '../../../src/api/wire.ts';
import { Authority, type TokenClaims, TokenIssuer } from '../../../src/cli/group/authority.ts';
import { LocalGroup } from '../../../src/cli/group/local-group.ts';
import { sha256 } from '../../../src/core/index.ts';
import { loadProtocol } from '../../../src/server/grpc/proto.ts';
import { asIs, connectMethod } from '../../../src/server/grpc/streams.ts';
import { type Dial, dialServer } from '../../../src/server/security/tls.ts';
import { eventually } from '../dev/lock-api.ts';

const ACCOUNT = 'test/worker';
export const OTHER_ACCOUNT = 'test/other';
export const PERSON = 'test/person';
export const GROUP_NAME = 'locks.test';
export const SECRET = 'a secret of a session';
const TTL_MS = 5_000;
const KEEPALIVE_MS = 1_000;

const method = connectMethod(loadProtocol());

export function manifest(serviceAccounts: readonly string[]): string {
  return stringify({
    apiVersion: 'leasehold.dev/v1alpha1',
    kind: 'LockNamespace',
    metadata: { name: 'locks', namespace: 'test' },
    spec: { safety: { class: 'Efficiency' }, consumers: [{ namespace: 'test', serviceAccounts }] },
  });
}

export class SecureGroup {
  readonly folder: string;
  readonly group: LocalGroup;
  readonly issuer: TokenIssuer;
  readonly #clients: TestClient[] = [];

  private constructor(folder: string, group: LocalGroup) {
    this.folder = folder;
    this.group = group;
    this.issuer = new TokenIssuer(JSON.parse(this.read('pki/issuer.jwk')));
  }

  static async start(): Promise<SecureGroup> {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-secure-'));
    const group = await LocalGroup.make({
      folder,
      alias: 'locks',
      manifest: manifest(['worker', 'other', 'person']),
      etcd: await ensureEtcd(),
      etcdFlags: ['--unsafe-no-fsync'],
      node: process.execPath,
      leasehold: join(import.meta.dirname, '../../../src/cli/main.ts'),
      security: { account: ACCOUNT, groupName: GROUP_NAME },
      server: { tokens: { jwks: 'pki/jwks.json', people: [PERSON] } },
      leaseTtlSeconds: 2,
    });
    const secure = new SecureGroup(folder, group);
    try {
      await group.start(['etcd-a', 'etcd-b', 'etcd-c', 'issuer']);
      await group.start(['server-a', 'server-b', 'server-c']);
      await group.start(['sidecar']);
      await eventually(() => secure.leads() !== null, 20_000);
    } catch (error) {
      await secure.end();
      throw error;
    }
    return secure;
  }

  /** Name of the server that has logged last that it leads. */
  leads(): string | null {
    const times = ['server-a', 'server-b', 'server-c'].map((name) => {
      const lines = this.log(name).filter((line) => line.msg === 'leads');
      return { name, epoch: Number(lines.at(-1)?.epoch ?? 0) };
    });
    const last = times.sort((a, b) => b.epoch - a.epoch)[0];
    return last === undefined || last.epoch === 0 ? null : last.name;
  }

  log(name: string): readonly Readonly<Record<string, unknown>>[] {
    const lines = this.read(`${name}.log`).trim().split('\n');
    return lines.flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []));
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8');
  }

  /** As whoever rotates files does it: complete or not at all. */
  replace(path: string, text: string): void {
    const place = join(this.folder, path);
    writeFileSync(`${place}.new`, text, { mode: 0o600 });
    renameSync(`${place}.new`, place);
  }

  get ca(): Buffer {
    return Buffer.from(this.read('pki/clients-ca.crt'));
  }

  get endpoints(): readonly string[] {
    return this.group.plan.endpoints;
  }

  token(claims: Partial<TokenClaims> = {}): Promise<string> {
    return this.issuer.issue({ account: ACCOUNT, podUid: 'pod-1', ...claims });
  }

  connect(
    token: string | null,
    { endpoint = this.endpoints[0] as string, dial }: ConnectOptions = {},
  ): TestClient {
    const client = new TestClient(endpoint, dial ?? dialServer(this.ca, endpoint), token);
    this.#clients.push(client);
    return client;
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.group.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface ConnectOptions {
  readonly endpoint?: string;
  readonly dial?: Dial;
}

export { Authority, type TokenClaims, TokenIssuer };

/** One stream to a front end, and what came over it. */
export class TestClient {
  readonly notices: SessionNotice[] = [];
  /** Status with which the stream ended. */
  readonly ended: Promise<Pick<StatusObject, 'code' | 'details'>>;
  readonly #client: Client;
  readonly #call;
  readonly #waiting = new Map<number, (body: AnswerBody) => void>();
  readonly #timers: NodeJS.Timeout[] = [];
  #lastId = 0;
  #lastKeepalive = 0;

  constructor(endpoint: string, { credentials, options }: Dial, token: string | null) {
    this.#client = new Client(endpoint, credentials, { 'grpc.use_local_subchannel_pool': 1, ...options });
    const metadata = new Metadata();
    if (token !== null) metadata.set('authorization', `Bearer ${token}`);
    this.#call = this.#client.makeBidiStreamRequest(method.definition.path, asIs, asIs, metadata);
    this.#call.on('error', () => undefined);
    this.ended = new Promise((resolve) => this.#call.on('status', resolve));
    this.#call.on('data', (bytes: Buffer) => {
      const { answers, notices } = method.response.decode(bytes);
      this.notices.push(...notices);
      for (const { id, body } of answers) this.#waiting.get(id)?.(body);
    });
  }

  /** The answer, or what ended the stream before it. */
  async ask(body: ClientRequestBody): Promise<AnswerBody | { type: 'ended'; details: string }> {
    const id = ++this.#lastId;
    const answer = new Promise<AnswerBody>((resolve) => this.#waiting.set(id, resolve));
    this.#call.write(method.request.encode({ format: 1, requests: [{ id, body }] }));
    return Promise.race([answer, this.ended.then(({ details }) => ({ type: 'ended' as const, details }))]);
  }

  /** A session, kept alive until the stream closes. */
  async open(client = 'test'): Promise<number> {
    const body = { type: 'open', client, ttlMs: TTL_MS, maxHoldMs: 0, secretHash: sha256(SECRET) } as const;
    const answer = await this.ask(body);
    if (answer.type !== 'opened') throw new Error(`not opened: ${JSON.stringify(answer)}`);
    this.keepAlive(answer.session, 1);
    return answer.session;
  }

  keepAlive(session: number, attach: number): void {
    const send = () => {
      const keepalive = { number: ++this.#lastKeepalive, sessions: [{ session, attach }] };
      this.#call.write(method.request.encode({ format: 1, requests: [], keepalive }));
    };
    this.#timers.push(setInterval(send, KEEPALIVE_MS));
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#call.cancel();
    this.#client.close();
  }
}
