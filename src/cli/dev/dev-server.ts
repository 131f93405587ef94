/**
 * `leasehold dev`: everything in one process. Each LockNamespace of the manifests is a group of one replica on an embedded
 * log; one sidecar over all of them serves the HTTP API. The parts are those that run apart in a cluster.
 */
import { join } from 'node:path';
import { type DirectoryLock, lockDirectory } from '../../log/embedded/directory-lock.ts';
import type { ManifestError, ManifestNotice } from '../../platform/manifests/format.ts';
import { type LoadResult, loadManifests } from '../../platform/manifests/load.ts';
import { watchManifests } from '../../platform/manifests/watch.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { createMetrics } from '../../platform/prometheus.ts';
import type { Runtime } from '../../platform/runtime.ts';
import { startAdminServer } from '../../server/grpc/admin-server.ts';
import { ADMIN_SOCKET } from '../../server/grpc/socket.ts';
import type { StopReason } from '../../server/leader/leader-options.ts';
import { haltMessage } from '../../server/member/halt-message.ts';
import { createHttpApi, listenHttp } from '../../sidecar/http/index.ts';
import { Sidecar } from '../../sidecar/sidecar.ts';
import { FileStateStore } from '../../sidecar/state-file.ts';
import { usableFolder } from '../folders.ts';
import { DevNamespace, newLineageCommand } from './namespace.ts';

export interface DevOptions {
  readonly runtime: Runtime;
  /** Files and folders with LockNamespace manifests. */
  readonly manifests: readonly string[];
  readonly dataFolder: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly onReload?: (report: ReloadReport) => void;
  /** A namespace's lock server has given up; the process should end. */
  readonly onFatal: (message: string) => void;
}

export type ReloadReport =
  | {
      readonly kind: 'applied';
      readonly added: readonly string[];
      readonly changed: readonly string[];
      readonly removed: readonly string[];
    }
  | { readonly kind: 'refused'; readonly errors: readonly ManifestError[] }
  /** The manifests are right, but could not be put into force. */
  | { readonly kind: 'failed'; readonly error: unknown };

export class ManifestsInvalid extends Error {
  readonly errors: readonly ManifestError[];
  constructor(errors: readonly ManifestError[]) {
    super('the manifests are not valid');
    this.name = 'ManifestsInvalid';
    this.errors = errors;
  }
}

export interface DevServer {
  readonly url: string;
  readonly metrics: Metrics;
  readonly notices: readonly ManifestNotice[];
  namespaces(): readonly DevNamespace[];
  stop(): Promise<void>;
}

/** Starts everything. Rejects with ManifestsInvalid, or with a message for people (port taken, data in use). */
export async function startDev(options: DevOptions): Promise<DevServer> {
  const loaded = await loadManifests({ paths: options.manifests });
  if (!loaded.ok) throw new ManifestsInvalid(loaded.errors);
  const namespaces = new DevNamespaces(options);
  const undo = async (error: unknown): Promise<never> => {
    await namespaces.stop();
    throw error;
  };
  await namespaces.apply(loaded).catch(undo);
  namespaces.sidecar.restore();
  const admin = await startAdminServer({
    socketPath: join(options.dataFolder, ADMIN_SOCKET),
    served: () => namespaces.all(),
    timers: options.runtime.timers,
  }).catch(undo);
  const api = createHttpApi({
    service: namespaces.sidecar,
    runtime: options.runtime,
    metrics: namespaces.metrics,
    health: true,
  });
  const server = await listenHttp({
    listener: api.listener,
    port: options.port,
    portSetting: '--port',
    logger: options.runtime.logger,
  }).catch(async (error: unknown) => {
    await admin.close();
    return undo(error);
  });
  const watch = watchManifests({
    paths: options.manifests,
    loaded,
    onChange: (result) => void namespaces.reload(result),
  });
  return {
    url: server.url,
    metrics: namespaces.metrics,
    notices: loaded.notices,
    namespaces: () => namespaces.all(),
    stop: async () => {
      watch.close();
      api.beginStop();
      await Promise.all([server.close(), admin.close()]);
      await namespaces.stop();
    },
  };
}

function openStore(dataFolder: string, lock: DirectoryLock): FileStateStore {
  try {
    return new FileStateStore(join(dataFolder, 'sidecar.jsonl'));
  } catch (error) {
    lock.release();
    throw error;
  }
}

class DevNamespaces {
  readonly metrics = createMetrics({ processMetrics: true });
  readonly sidecar: Sidecar;
  readonly #options: DevOptions;
  readonly #lock: DirectoryLock;
  readonly #store: FileStateStore;
  readonly #served = new Map<string, DevNamespace>();
  /** Reloads one after the other. */
  #last: Promise<void> = Promise.resolve();
  #isStopping = false;

  constructor(options: DevOptions) {
    this.#options = options;
    usableFolder('--data', options.dataFolder);
    // Before anything in the folder is touched: each namespace's log has its own lock, but the folder holds more than logs.
    this.#lock = lockDirectory(options.dataFolder);
    this.#store = openStore(options.dataFolder, this.#lock);
    this.sidecar = new Sidecar({ runtime: options.runtime, store: this.#store });
  }

  all(): readonly DevNamespace[] {
    return [...this.#served.values()];
  }

  /** An invalid set changes nothing: what was served goes on, and the report says why. Never rejects. */
  reload(result: LoadResult): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (!this.#isStopping) this.#options.onReload?.(await this.#reload(result));
    });
    return this.#last;
  }

  async #reload(result: LoadResult): Promise<ReloadReport> {
    if (!result.ok) return { kind: 'refused', errors: result.errors };
    try {
      return await this.apply(result);
    } catch (error) {
      return { kind: 'failed', error };
    }
  }

  /** Starts what is new before anything is taken away: if that fails, nothing has changed. */
  async apply(
    result: Extract<LoadResult, { ok: true }>,
  ): Promise<Extract<ReloadReport, { kind: 'applied' }>> {
    const wanted = new Map(
      result.namespaces.map(({ lockNamespace }) => [lockNamespace.metadata.name, lockNamespace]),
    );
    const removed = this.all().filter(
      ({ alias, config }) => wanted.get(alias)?.metadata.namespace !== config.namespace,
    );
    // An alias that moves to another Kubernetes namespace is free only when its old owner is gone.
    const moved = removed.filter(({ alias }) => wanted.has(alias));
    for (const served of moved) await this.#remove(served);
    const added: string[] = [];
    const changed: string[] = [];
    for (const [alias, lockNamespace] of wanted) {
      const served = this.#served.get(alias);
      if (served === undefined) {
        this.#served.set(alias, await DevNamespace.start(lockNamespace, this.#context()));
        added.push(alias);
      } else if (await served.reconfigure(lockNamespace)) {
        changed.push(alias);
      }
    }
    for (const served of removed) if (!moved.includes(served)) await this.#remove(served);
    return { kind: 'applied', added, changed, removed: removed.map(({ alias }) => alias) };
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#last;
    this.sidecar.stop();
    for (const served of this.#served.values()) await served.stop();
    this.#store.close();
    this.#lock.release();
  }

  /** The namespace is gone: its grants are revoked in its log, and told lost here. */
  async #remove(served: DevNamespace): Promise<void> {
    this.#served.delete(served.alias);
    await served.replica.configure(null);
    this.sidecar.removeNamespace(served.alias);
    await served.stop();
  }

  #context() {
    const { runtime, dataFolder, onFatal } = this.#options;
    const onStopped = (alias: string, reason: StopReason): void => {
      onFatal(`the lock server of ${alias} has stopped: ${whyStopped(reason, alias, dataFolder)}`);
    };
    return { runtime, dataFolder, metrics: this.metrics, sidecar: this.sidecar, onStopped };
  }
}

function whyStopped(reason: StopReason, alias: string, dataFolder: string): string {
  switch (reason.kind) {
    case 'deposed':
    case 'handedOver':
      return 'another process has taken its log over';
    case 'failed':
      return String(reason.error);
    case 'halted':
      return haltMessage(reason.proof, newLineageCommand(alias, dataFolder));
  }
}
