/**
 * The seal of marks: an HMAC under a key that only the lock servers of a group have. Without it a client could halt the group with
 * a mark of its own making (rule S10).
 */
import { Buffer } from 'node:buffer';
import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto';
import type { Mark } from '../../api/wire.ts';

const KEY = /^[0-9a-f]{64}$/;
const DIGEST = /^[0-9a-f]{64}$/;

export class Seals {
  readonly #key: Buffer;

  /** `key`: 64 hex digits. */
  constructor(key: string) {
    if (!KEY.test(key)) throw new RangeError('the key of a group has 64 hex digits');
    this.#key = Buffer.from(key, 'hex');
  }

  seal(place: Omit<Mark, 'seal'>): Mark {
    return { ...place, seal: this.#sealOf(place).digest('hex') };
  }

  isGenuine(mark: Mark): boolean {
    if (!DIGEST.test(mark.hash) || !DIGEST.test(mark.seal)) return false;
    return timingSafeEqual(this.#sealOf(mark).digest(), Buffer.from(mark.seal, 'hex'));
  }

  #sealOf({ lineage, epoch, index, hash }: Omit<Mark, 'seal'>): Hmac {
    const text = JSON.stringify(['leasehold mark 1', lineage, epoch, index, hash]);
    return createHmac('sha256', this.#key).update(text);
  }
}
