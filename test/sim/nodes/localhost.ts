/**
 * The loopback interface between applications and their sidecar: what is sent takes a moment, waits while the sidecar is
 * stopped, and is refused while it does not run. Also keeps note of what each application has shown of itself.
 */
import { LeaseholdError } from '../../../src/api/errors.ts';
import type { SidecarService } from '../../../src/sidecar/service.ts';
import type { Random } from '../../support/random.ts';
import type { Findings } from '../judge/findings.ts';
import type { VirtualProcess } from '../world/process.ts';
import { US_PER_MS, type World } from '../world/world.ts';

/** The sidecar behind it. */
export interface Served {
  readonly name: string;
  readonly process: VirtualProcess;
  /** Null while it does not run. */
  readonly sidecar: SidecarService | null;
}

export interface LocalhostOptions {
  readonly sidecar: Served;
  readonly findings: Findings;
  readonly delayMs: number;
}

/** What a session's application has shown of itself, as far as it reached the sidecar. */
export interface Signs {
  openCalls: number;
  lastUs: number;
  isStreamOpen: boolean;
  /** Of an earlier life of the sidecar, and its stream has not been opened in this one. */
  isUnseen: boolean;
  /** Means nothing while the stream is open. */
  streamMissingSinceUs: number;
}

export class Localhost {
  readonly world: World;
  readonly sidecar: Served;
  readonly random: Random;
  readonly signs = new Map<string, Signs>();
  readonly #options: LocalhostOptions;
  /** Connections that a stopped sidecar has not looked at yet. */
  readonly #accepted = new Set<{ readonly break: () => void }>();

  constructor(world: World, options: LocalhostOptions) {
    this.world = world;
    this.#options = options;
    this.sidecar = options.sidecar;
    this.random = world.random(`localhost of ${options.sidecar.name}`);
  }

  get findings(): Findings {
    return this.#options.findings;
  }

  signsOf(sessionId: string): Signs {
    let signs = this.signs.get(sessionId);
    if (signs === undefined) {
      const { nowUs } = this.world;
      signs = {
        openCalls: 0,
        lastUs: nowUs,
        isStreamOpen: false,
        isUnseen: false,
        streamMissingSinceUs: nowUs,
      };
      this.signs.set(sessionId, signs);
    }
    return signs;
  }

  travel(action: () => void): void {
    this.world.at(this.world.nowUs + this.drawDelayUs(), action);
  }

  drawDelayUs(): number {
    return Math.ceil(this.#options.delayMs * US_PER_MS * (this.random.int(1_000) / 1_000));
  }

  /** A new connection to the sidecar. */
  arrive(serve: (service: SidecarService) => void, onRefused: () => void): void {
    this.travel(() => {
      const { process, sidecar } = this.sidecar;
      if (process.life === null || sidecar === null) {
        onRefused();
        return;
      }
      const connection = { break: onRefused };
      this.#accepted.add(connection);
      process.enter(process.life, 'message', () => {
        this.#accepted.delete(connection);
        serve(sidecar);
      });
    });
  }

  /** Something on a connection that is open. */
  enterSidecar(action: () => void): void {
    const { process } = this.sidecar;
    if (process.life !== null) process.enter(process.life, 'message', action);
  }

  sidecarDied(): void {
    for (const connection of [...this.#accepted]) connection.break();
    this.#accepted.clear();
    this.signs.clear();
  }

  /** Every failure must be one of the error table: anything else would be a 5xx of our own making. */
  checkError(error: unknown, what: string): void {
    if (error instanceof LeaseholdError) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.findings.add('api-error', `${what} failed otherwise than by the error table: ${text}`);
  }
}

/** Since when an application has been silent in the way that its session minds; now, if it is not. */
export function silentSinceUs(keepalive: 'app' | 'stream' | 'both', signs: Signs, nowUs: number): number {
  const calls = signs.openCalls > 0 ? nowUs : signs.lastUs;
  const stream = signs.isStreamOpen ? nowUs : signs.streamMissingSinceUs;
  switch (keepalive) {
    case 'app':
      return calls;
    case 'stream':
      return stream;
    case 'both':
      return Math.min(calls, stream);
  }
}
