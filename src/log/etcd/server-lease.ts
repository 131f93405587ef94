/**
 * The one etcd lease of a lock server (case I08). It is kept alive while the server runs, over one stream, and says nothing of its
 * loss: a leader learns that from the fence of its next append, never from here.
 */
import type { Timer, Timers } from '../../platform/runtime.ts';
import type { EtcdClient, KeepaliveStream } from './client.ts';

/** Keepalives in one TTL. */
const KEEPALIVES_PER_TTL = 4;

export class ServerLease {
  readonly id: string;
  readonly #client: EtcdClient;
  readonly #timers: Timers;
  readonly #everyMs: number;
  #stream: KeepaliveStream | null = null;
  /**
   * Sent and not answered when the next is due: the stream is given up, and another member asked. Where the answer is only late this
   * costs a stream and no more, since a keepalive counts when it arrives; where the member stands still, it leaves time for the others.
   */
  #isUnanswered = false;
  #timer: Timer | null = null;
  #isClosed = false;

  private constructor(client: EtcdClient, timers: Timers, id: string, ttlSeconds: number) {
    this.#client = client;
    this.#timers = timers;
    this.id = id;
    this.#everyMs = (ttlSeconds * 1_000) / KEEPALIVES_PER_TTL;
    this.#plan();
  }

  static async grant(client: EtcdClient, timers: Timers, ttlSeconds: number): Promise<ServerLease> {
    return new ServerLease(client, timers, await client.grantLease(ttlSeconds), ttlSeconds);
  }

  /** Lets the lease run out. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#drop();
  }

  /** Ends the lease, and with it the leadership that hangs on it, at once. */
  async revoke(): Promise<void> {
    this.close();
    await this.#client.revokeLease(this.id);
  }

  #plan(): void {
    this.#timer = this.#timers.after(this.#everyMs, () => {
      this.#keepAlive().catch(() => this.#fail());
      this.#plan();
    });
  }

  async #keepAlive(): Promise<void> {
    if (this.#isUnanswered) this.#fail();
    this.#isUnanswered = true;
    this.#stream ??= await this.#open();
    if (this.#isClosed) this.#drop();
    else this.#stream.write({ ID: this.id });
  }

  async #open(): Promise<KeepaliveStream> {
    const stream = await this.#client.openKeepalives();
    const onEnd = (): void => {
      if (this.#stream === stream) this.#stream = null;
    };
    stream.on('data', () => {
      this.#isUnanswered = false;
    });
    stream.on('error', onEnd);
    stream.on('end', onEnd);
    return stream;
  }

  #fail(): void {
    this.#drop();
    this.#client.skipMember();
  }

  #drop(): void {
    const stream = this.#stream;
    this.#stream = null;
    stream?.cancel();
  }
}
