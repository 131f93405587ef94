/**
 * One `leasehold dev` after the other on the same folder and port. Each is killed at a random moment: some time after it
 * began to serve, around a request of a chosen kind, or while it still starts.
 */
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { DevProcess } from '../../support/dev/dev-process.ts';
import type { Workspace } from '../../support/dev/workspace.ts';
import type { Random } from '../../support/random.ts';
import type { Outages } from './ledger.ts';

export type RequestKind = 'open' | 'acquire' | 'release' | 'renew' | 'keepalive' | 'read';
export type RequestPhase = 'sent' | 'answered';

const KINDS: readonly RequestKind[] = [
  'acquire',
  'acquire',
  'release',
  'release',
  'open',
  'renew',
  'keepalive',
];
const LIFE_MS_MIN = 50;
const LIFE_MS_MAX = 650;
/** A chosen request that does not come is not waited for. */
const TRIGGER_MS_MAX = 400;
const STARTING_SHARE = 0.12;
const STARTING_MS_MAX = 800;
const AROUND_REQUEST_SHARE = 0.6;
const AFTER_REQUEST_MS_MAX = 6;
/** Below the ports that the system gives out by itself: while the server is down, no client's own end may get its port. */
const PORT_MIN = 10_000;
const PORT_MAX = 32_000;

interface Trigger {
  readonly kind: RequestKind;
  readonly phase: RequestPhase;
  fire(): void;
}

interface Outage {
  readonly from: number;
  to: number;
}

export class Lives implements Outages {
  readonly workspace: Workspace;
  readonly #random: Random;
  readonly #outages: Outage[] = [];
  #dev: DevProcess | null = null;
  #port = 0;
  #kills = 0;
  readonly #complaints: string[] = [];
  #trigger: Trigger | null = null;
  /** Resolved when the next life serves. */
  #next = Promise.withResolvers<void>();

  constructor(workspace: Workspace, random: Random) {
    this.workspace = workspace;
    this.#random = random;
  }

  get port(): number {
    return this.#port;
  }

  get kills(): number {
    return this.#kills;
  }

  get outagesMs(): number[] {
    return this.#outages.map(({ from, to }) => to - from);
  }

  longestSince(sinceMs: number): number {
    const now = Date.now();
    const lengths = this.#outages.map(({ from, to }) => (to < sinceMs ? 0 : Math.min(to, now) - from));
    return Math.max(0, ...lengths);
  }

  async begin(): Promise<void> {
    this.#port = await freePort(this.#random);
    this.#dev = this.#spawn();
    await this.#dev.serving();
  }

  /** Clients tell of each request, so that a kill can be aimed at it. */
  moment(kind: RequestKind, phase: RequestPhase): void {
    if (this.#trigger?.kind === kind && this.#trigger.phase === phase) this.#trigger.fire();
  }

  nextLife(): Promise<void> {
    return this.#next.promise;
  }

  /** Lets it live for a while, kills it, and brings it back. */
  async endOne(): Promise<void> {
    await this.#untilTheMoment();
    const outage: Outage = { from: Date.now(), to: Number.POSITIVE_INFINITY };
    this.#outages.push(outage);
    await this.#kill();
    while (this.#random.chance(STARTING_SHARE)) {
      this.#dev = this.#spawn();
      await pause(this.#random.int(STARTING_MS_MAX));
      await this.#kill();
    }
    this.#dev = this.#spawn();
    await this.#dev.serving();
    outage.to = Date.now();
    const next = this.#next;
    this.#next = Promise.withResolvers();
    next.resolve();
  }

  /** Ends the last one in order. */
  async end(): Promise<void> {
    await this.#dev?.stop();
    this.#complaints.push(this.#dev?.stderr ?? '');
  }

  /** All that any of them had to complain of. */
  get complaints(): string {
    return this.#complaints.join('');
  }

  async abort(): Promise<void> {
    if (this.#dev?.hasExited === false) await this.#dev.kill();
  }

  #spawn(): DevProcess {
    const { manifests, data } = this.workspace;
    return DevProcess.spawn({ manifests: [manifests], data, port: this.#port });
  }

  async #kill(): Promise<void> {
    const dev = this.#dev;
    if (dev === null) return;
    const { code, signal } = await dev.kill();
    this.#kills++;
    this.#complaints.push(dev.stderr);
    if (signal !== 'SIGKILL') throw new Error(`it ended by itself (${code}):\n${dev.stdout}${dev.stderr}`);
  }

  async #untilTheMoment(): Promise<void> {
    const random = this.#random;
    await pause(random.between(LIFE_MS_MIN, LIFE_MS_MAX));
    if (!random.chance(AROUND_REQUEST_SHARE)) return;
    const afterMs = random.int(AFTER_REQUEST_MS_MAX + 1);
    const came = Promise.withResolvers<void>();
    const late = setTimeout(came.resolve, TRIGGER_MS_MAX);
    this.#trigger = {
      kind: random.pick(KINDS),
      phase: random.pick(['sent', 'answered'] as const),
      fire: () => {
        this.#trigger = null;
        if (afterMs === 0) came.resolve();
        else setTimeout(came.resolve, afterMs);
      },
    };
    await came.promise;
    clearTimeout(late);
    this.#trigger = null;
  }
}

async function freePort(random: Random): Promise<number> {
  for (;;) {
    const port = random.between(PORT_MIN, PORT_MAX);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}
