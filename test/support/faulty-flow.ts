/**
 * One direction of a connection through the faulty proxy: what has come in waits here until its fault lets it go on. Bytes are never
 * reordered or changed: TCP would not do that either. A connection that has lost bytes cannot be healed, so it ends with its fault.
 */
import type { Buffer } from 'node:buffer';
import type { Socket } from 'node:net';

export type Flow =
  | { readonly kind: 'pass' }
  /** As when a cable is cut: nothing arrives, everything does once it is mended. */
  | { readonly kind: 'hold' }
  /** As when the other side's machine is gone: nothing arrives, and the connection breaks once the fault is over. */
  | { readonly kind: 'drop' }
  | { readonly kind: 'delay'; readonly ms: number; readonly jitterMs: number }
  | { readonly kind: 'drip'; readonly bytesPerSecond: number };

export const PASS: Flow = { kind: 'pass' };
export const HOLD: Flow = { kind: 'hold' };
export const DROP: Flow = { kind: 'drop' };

/** So much waits for a slow or cut receiver; then the sender is not read any more. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const DRIP_EVERY_MS = 25;

interface Waiting {
  bytes: Buffer;
  dueMs: number;
}

export class FlowPipe {
  /** Bytes that a fault has held, slowed or dropped: proof that it was there. */
  hinderedBytes = 0;
  readonly #from: Socket;
  readonly #to: Socket;
  #flow: Flow;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | null = null;
  #hasEnded = false;
  #hasLost = false;

  constructor(from: Socket, to: Socket, flow: Flow) {
    this.#from = from;
    this.#to = to;
    this.#flow = flow;
    from.on('data', (bytes: Buffer) => this.#take(bytes));
    from.on('close', () => this.#end());
    to.on('drain', () => this.#pump());
  }

  set(flow: Flow): void {
    const hasLost = this.#hasLost && flow.kind !== 'drop';
    this.#flow = flow;
    if (hasLost) {
      this.#from.destroy();
      this.#to.destroy();
      return;
    }
    // What waited longer than the new fault would have it goes on now.
    if (flow.kind === 'pass') for (const chunk of this.#waiting) chunk.dueMs = 0;
    this.#pump();
  }

  #take(bytes: Buffer): void {
    const flow = this.#flow;
    if (flow.kind !== 'pass') this.hinderedBytes += bytes.length;
    if (flow.kind === 'drop' || this.#to.destroyed) {
      this.#hasLost = true;
      return;
    }
    if (flow.kind === 'pass' && this.#waiting.length === 0) {
      if (!this.#to.write(bytes)) this.#from.pause();
      return;
    }
    const lateMs = flow.kind === 'delay' ? flow.ms + Math.random() * flow.jitterMs : 0;
    const afterMs = this.#waiting.at(-1)?.dueMs ?? 0;
    this.#waiting.push({ bytes, dueMs: Math.max(afterMs, performance.now() + lateMs) });
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > WAITING_BYTES_MAX) this.#from.pause();
    this.#pump();
  }

  /** The sender has closed: the receiver learns it behind everything that was sent before. */
  #end(): void {
    this.#hasEnded = true;
    this.#pump();
  }

  #pump(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const flow = this.#flow;
    if (this.#to.destroyed) {
      this.#forget();
      return;
    }
    if (flow.kind === 'hold' || flow.kind === 'drop') return;
    if (flow.kind === 'drip') this.#drip(flow.bytesPerSecond);
    else this.#writeDue();
    if (this.#waiting.length > 0) return;
    if (this.#hasEnded) this.#to.end();
    else if (!this.#to.writableNeedDrain) this.#from.resume();
  }

  #writeDue(): void {
    const nowMs = performance.now();
    for (let head = this.#waiting[0]; head !== undefined; head = this.#waiting[0]) {
      if (head.dueMs > nowMs) {
        this.#later(head.dueMs - nowMs);
        return;
      }
      this.#waiting.shift();
      this.#waitingBytes -= head.bytes.length;
      this.#to.write(head.bytes);
    }
  }

  #drip(bytesPerSecond: number): void {
    const head = this.#waiting[0];
    if (head === undefined) return;
    const size = Math.max(1, Math.floor((bytesPerSecond * DRIP_EVERY_MS) / 1_000));
    this.#to.write(head.bytes.subarray(0, size));
    this.#waitingBytes -= Math.min(size, head.bytes.length);
    head.bytes = head.bytes.subarray(size);
    if (head.bytes.length === 0) this.#waiting.shift();
    this.#later(DRIP_EVERY_MS);
  }

  #later(ms: number): void {
    this.#timer ??= setTimeout(() => this.#pump(), ms);
  }

  #forget(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
  }
}
