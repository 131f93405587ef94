/**
 * A session as its application keeps it: the keepalive calls, the event stream, the grants in it.
 */
import type { StreamLine } from '../../../src/sidecar/service.ts';
import type { Habits } from '../plan.ts';
import type { Life } from '../world/process.ts';
import type { AppGrant } from './app-grant.ts';
import type { Call, CallOptions, LocalHttp } from './local-http.ts';

export type Keepalive = 'app' | 'stream' | 'both';

const STREAM_RETRY_MS = 300;
/** Calls that need no network are answered at once. */
export const LOCAL_MS_MAX = 100;

/** What a session needs of the application that keeps it. */
export interface SessionKeeper {
  readonly life: Life;
  readonly habits: Habits;
  readonly http: LocalHttp;
  call<T>(options: CallOptions<T>): Call<T>;
  grantOf(fullName: string, token: number): AppGrant | undefined;
  sessionEnded(session: AppSession): void;
}

export class AppSession {
  readonly id: string;
  readonly keepalive: Keepalive;
  readonly ttlMs: number;
  readonly grants = new Set<AppGrant>();
  readonly #app: SessionKeeper;
  #closeStream: (() => void) | null = null;
  isOver = false;
  /** It makes no more calls and will not close the session: its application forgot it. */
  isSilent = false;

  constructor(
    app: SessionKeeper,
    { id, keepalive, ttlMs }: { id: string; keepalive: Keepalive; ttlMs: number },
  ) {
    this.#app = app;
    this.id = id;
    this.keepalive = keepalive;
    this.ttlMs = ttlMs;
    if (keepalive !== 'stream') void this.#keepAlive();
    if (keepalive !== 'app') this.#openStream();
  }

  get isUsable(): boolean {
    return !this.isOver && !this.isSilent;
  }

  get hasStream(): boolean {
    return this.#closeStream !== null;
  }

  /** No more calls, no word of it; an open stream stays open only if `keepsStream`. */
  fallSilent({ keepsStream }: { readonly keepsStream: boolean }): void {
    this.isSilent = true;
    if (!keepsStream) this.closeStream();
  }

  /** Closing the stream of a session that needs it is giving everything up. */
  closeStream(): void {
    if (this.#closeStream === null) return;
    if (this.keepalive !== 'app') {
      for (const grant of this.grants) grant.giveUp();
      this.isOver = true;
    }
    this.#closeStream();
    this.#closeStream = null;
  }

  /** The application deletes the session, or has learned that it is gone. */
  end(): void {
    this.isOver = true;
    this.#closeStream?.();
    this.#closeStream = null;
    this.#app.sessionEnded(this);
  }

  async #keepAlive(): Promise<void> {
    const everyMs = this.ttlMs * this.#app.habits.keepaliveShare;
    for (;;) {
      await this.#app.life.sleep(everyMs);
      if (this.isOver || this.isSilent) return;
      const { outcome } = this.#app.call({
        what: 'keepalive',
        session: this.id,
        boundMs: LOCAL_MS_MAX,
        run: (service) => service.keepaliveSession(this.id),
      });
      const answer = await outcome;
      if (answer.kind === 'refused' && answer.error.code === 'SESSION_EXPIRED' && !this.hasStream) this.end();
    }
  }

  #openStream(): void {
    if (this.isOver || this.isSilent) return;
    const close = this.#app.http.streams.open(this.#app.life, this.id, {
      onLine: (line) => this.#read(line),
      onEnd: (why) => {
        if (this.#closeStream === close) this.#closeStream = null;
        if (why === 'expired' || why === 'finished') this.end();
        // After a restart of the sidecar the session goes on with a new stream (rule A3).
        else void this.#app.life.sleep(STREAM_RETRY_MS).then(() => this.#openStream());
      },
    });
    this.#closeStream = close;
  }

  #read(line: StreamLine): void {
    switch (line.event) {
      case 'lost':
        this.#grant(line.name, line.token)?.toldLost();
        return;
      case 'sessionLost':
        this.end();
        return;
      default:
        return;
    }
  }

  #grant(fullName: string, token: number): AppGrant | undefined {
    return this.#app.grantOf(fullName, token);
  }
}
