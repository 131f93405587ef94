/**
 * The admin services over a real socket, in front of lock servers in this process: for what a separate process could be brought
 * to only with much luck or load (a trimmed log, a slow reader, a namespace that goes).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach } from 'vitest';
import type { HistoryEntry, SessionId, Token } from '../../src/api/entry.ts';
import { AdminClient } from '../../src/cli/admin-client.ts';
import { MemoryLog } from '../../src/log/memory-log.ts';
import { MemoryStore } from '../../src/log/memory-store.ts';
import { createSystemRuntime } from '../../src/platform/system-runtime.ts';
import { type AdminServer, startAdminServer } from '../../src/server/grpc/admin-server.ts';
import { loadProtocol } from '../../src/server/grpc/proto.ts';
import { ADMIN_SOCKET, socketTarget } from '../../src/server/grpc/socket.ts';
import { Replica } from '../../src/server/member/replica.ts';
import { acquireCommand, namespaceConfig, openCommand } from './core.ts';

const runtime = createSystemRuntime({ logLevel: 'error' });

export const protocol = loadProtocol();

/** One lock server on a log in memory, used without clients. */
export class Group {
  readonly alias: string;
  readonly replica: Replica;

  private constructor(alias: string, replica: Replica) {
    this.alias = alias;
    this.replica = replica;
  }

  static async start(alias: string, snapshotDueBytes = Number.MAX_SAFE_INTEGER): Promise<Group> {
    const replica = await Replica.start({
      runtime,
      log: new MemoryLog(new MemoryStore(`lineage-of-${alias}`)),
      serverId: 'test',
      config: namespaceConfig({ namespace: 'test', name: alias }),
      snapshotDueBytes,
      onStopped: (reason) => {
        throw new Error(`the lock server of ${alias} stopped: ${reason.kind}`);
      },
    });
    return new Group(alias, replica);
  }

  get head(): number {
    return this.replica.status().position.index;
  }

  async open(): Promise<SessionId> {
    const opened = await this.replica.submit(openCommand());
    if (opened.type !== 'opened') throw new Error(`no session: ${opened.type}`);
    return opened.session;
  }

  async lock(session: SessionId, name: string): Promise<Token> {
    const granted = await this.replica.submit(acquireCommand({ session, key: name.slice(0, 64), name }));
    if (granted.type !== 'granted') throw new Error(`not granted: ${granted.type}`);
    return granted.token;
  }

  /** Two entries or fewer, two events, and nothing is left. */
  async lockAndRelease(session: SessionId, name: string): Promise<void> {
    const token = await this.lock(session, name);
    const acks = [name.slice(0, 64)];
    await this.replica.submit({ type: 'release', session, attach: 1, name, token, key: '', acks });
  }
}

export interface AdminServices {
  readonly socketPath: string;
  readonly client: AdminClient;
  readonly server: AdminServer;
  /** What is served; a test may change it. */
  groups: Group[];
  serve(...groups: readonly Group[]): Promise<void>;
  /** One unary call without the client; resolves with its error, too. */
  call(service: string, name: string, request: object): Promise<unknown>;
}

/** Call it at the top of a test file; each test serves what it needs. */
export function adminServices(): AdminServices {
  let folder = '';
  let running: { readonly server: AdminServer; readonly client: AdminClient } | null = null;
  const now = () => {
    if (running === null) throw new Error('nothing is served yet');
    return running;
  };
  const services: AdminServices = {
    groups: [],
    get socketPath() {
      return join(folder, ADMIN_SOCKET);
    },
    get client() {
      return now().client;
    },
    get server() {
      return now().server;
    },
    async serve(...groups) {
      services.groups = [...groups];
      const { socketPath } = services;
      const server = await startAdminServer({
        socketPath,
        served: () => services.groups,
        timers: runtime.timers,
      });
      running = { server, client: new AdminClient(socketPath) };
    },
    call: (service, name, request) => callOnce(services.socketPath, service, name, request),
  };
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-admin-'));
  });
  afterEach(async () => {
    running?.client.close();
    await running?.server.close();
    running = null;
    for (const { replica } of services.groups) await replica.stop();
    rmSync(folder, { recursive: true });
  });
  return services;
}

function callOnce(socketPath: string, service: string, name: string, request: object): Promise<unknown> {
  const method = protocol.service(service)[name];
  if (method === undefined) throw new Error(`no ${name}`);
  const { path, requestSerialize, responseDeserialize } = method;
  const client = new Client(socketTarget(socketPath), credentials.createInsecure());
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, (error, answer) => {
      client.close();
      resolve(error ?? answer);
    });
  });
}

export async function collect(entries: AsyncIterable<HistoryEntry>): Promise<HistoryEntry[]> {
  const all: HistoryEntry[] = [];
  for await (const entry of entries) all.push(entry);
  return all;
}
