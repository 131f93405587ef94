/**
 * Writing and reading bytes: the primitives of every stored format. Deterministic by construction (rule L6): one way to
 * write each value, no floating point, no map order. Reading is strict: malformed input throws, it never yields a guess.
 */
import { Buffer, isUtf8 } from 'node:buffer';

const INITIAL_BYTES = 64 * 1024;

export class FormatError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'FormatError';
  }
}

export class ByteWriter {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Forgets what was written; the memory is used again. */
  reset(): void {
    this.#length = 0;
  }

  /** A view of what was written, valid until the next write or reset. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** A copy of what was written. */
  copy(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.view());
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /** A non-negative safe integer: seven bits a byte, least first. */
  uint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new FormatError(`${value} is not a non-negative safe integer`);
    this.#reserve(8);
    let rest = value;
    while (rest > 0x7fffffff) {
      this.#bytes[this.#length++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest > 127) {
      this.#bytes[this.#length++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  bool(value: boolean): void {
    this.byte(value ? 1 : 0);
  }

  /** UTF-8 behind its length in bytes. A lone surrogate throws: it would read back as another text. */
  string(value: string): void {
    const units = value.length;
    this.#reserve(3 * units + 8);
    if (units < 48 && this.#ascii(value, units)) return;
    if (!value.isWellFormed()) throw new FormatError('a text is not well-formed Unicode');
    const bytes = Buffer.byteLength(value);
    this.uint(bytes);
    this.#reserve(bytes);
    this.#length += this.#bytes.write(value, this.#length);
  }

  /** Short plain text, the common case, without leaving JavaScript. False (and nothing written) when it is not plain. */
  #ascii(value: string, units: number): boolean {
    const start = this.#length;
    const bytes = this.#bytes;
    bytes[start] = units;
    for (let i = 0; i < units; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 127) return false;
      bytes[start + 1 + i] = unit;
    }
    this.#length = start + 1 + units;
    return true;
  }

  strings(values: readonly string[]): void {
    this.uint(values.length);
    for (let i = 0; i < values.length; i++) this.string(values[i] as string);
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + bytes));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

const NO_STRINGS: readonly string[] = [];

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  byte(): number {
    const value = this.#bytes[this.#at];
    if (value === undefined) throw new FormatError('the bytes end too early');
    this.#at++;
    return value;
  }

  uint(): number {
    const first = this.byte();
    return first < 128 ? first : this.#longUint(first);
  }

  #longUint(first: number): number {
    let value = first & 127;
    let scale = 128;
    for (let i = 1; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (byte === 0) throw new FormatError('a number is written longer than it needs to be');
        if (!Number.isSafeInteger(value)) throw new FormatError('a number is over 2^53');
        return value;
      }
      scale *= 128;
    }
    throw new FormatError('a number is longer than 8 bytes');
  }

  bool(): boolean {
    const value = this.byte();
    if (value > 1) throw new FormatError(`${value} is neither true nor false`);
    return value === 1;
  }

  string(): string {
    const length = this.uint();
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new FormatError('a text runs over the end');
    const value = this.#bytes.toString('utf8', this.#at, end);
    // Node puts U+FFFD in the place of what is not UTF-8; a text may also have one of its own.
    if (value.includes('\ufffd') && !isUtf8(this.#bytes.subarray(this.#at, end)))
      throw new FormatError('a text is not UTF-8');
    this.#at = end;
    return value;
  }

  strings(): readonly string[] {
    const count = this.uint();
    if (count === 0) return NO_STRINGS;
    if (count > this.#bytes.length - this.#at) throw new FormatError('a list is longer than the bytes left');
    // At its full length: one that grows by itself begins with room for seventeen.
    const values = new Array<string>(count);
    for (let i = 0; i < count; i++) values[i] = this.string();
    return values;
  }

  /** To be called last: bytes left over mean a different format. */
  end(): void {
    if (this.#at !== this.#bytes.length)
      throw new FormatError(`${this.#bytes.length - this.#at} bytes left over`);
  }
}
