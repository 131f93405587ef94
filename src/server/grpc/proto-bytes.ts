/**
 * Protobuf's wire format, as far as the frames of the lock protocol need it: numbers, texts, messages within messages.
 */
import { Buffer } from 'node:buffer';
import { MessageError } from './proto.ts';

const INITIAL_BYTES = 64 * 1024;
/** Texts up to this length are tried as plain text first: that is faster than to leave JavaScript. */
const SHORT_TEXT = 40;
/** 2^31: below it bit operations are exact. */
const SMALL = 0x80000000;
/** Bytes of a number up to 2^53. */
const NUMBER_BYTES_MAX = 8;
/** Bytes of the longest number of the format. */
const VARINT_BYTES_MAX = 10;

/** Wire types: the low three bits of a tag. */
const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;

export function numberTag(field: number): number {
  return (field << 3) | VARINT;
}

export function lengthTag(field: number): number {
  return (field << 3) | LENGTH;
}

/** Fields with their default value are not written, as proto3 has it. Tags are those of fields 1 to 15: one byte. */
export class ProtoWriter {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  #length = 0;

  /** Forgets what was written; the memory is used again. */
  reset(): void {
    this.#length = 0;
  }

  /** A copy of what was written. */
  copy(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  number(tag: number, value: number): void {
    if (value === 0) return;
    this.#reserve(1 + NUMBER_BYTES_MAX);
    this.#bytes[this.#length++] = tag;
    this.#varint(value);
  }

  bool(tag: number, value: boolean): void {
    if (value) this.number(tag, 1);
  }

  text(tag: number, value: string): void {
    if (value !== '') this.item(tag, value);
  }

  /** One of a list: also an empty text is written. */
  item(tag: number, value: string): void {
    const units = value.length;
    this.#reserve(1 + NUMBER_BYTES_MAX + 3 * units);
    this.#bytes[this.#length++] = tag;
    if (units <= SHORT_TEXT && this.#plain(value, units)) return;
    this.#varint(Buffer.byteLength(value));
    this.#length += this.#bytes.write(value, this.#length);
  }

  items(tag: number, values: readonly string[]): void {
    for (let i = 0; i < values.length; i++) this.item(tag, values[i] as string);
  }

  /** A list of numbers, as proto3 packs it. */
  numbers(tag: number, values: readonly number[]): void {
    const begun = this.begin(tag);
    for (let i = 0; i < values.length; i++) {
      this.#reserve(NUMBER_BYTES_MAX);
      this.#varint(values[i] as number);
    }
    this.end(begun);
  }

  /** A message that is encoded already. */
  message(tag: number, bytes: Uint8Array): void {
    this.#reserve(1 + NUMBER_BYTES_MAX + bytes.byteLength);
    this.#bytes[this.#length++] = tag;
    this.#varint(bytes.byteLength);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.byteLength;
  }

  /** A message follows, up to `end` with what this returns. */
  begin(tag: number): number {
    this.#reserve(2);
    this.#bytes[this.#length++] = tag;
    return this.#length++;
  }

  /** Most messages are shorter than 128 bytes, so one byte was kept for their length; others are moved. */
  end(begun: number): void {
    const start = begun + 1;
    const length = this.#length - start;
    if (length < 128) {
      this.#bytes[begun] = length;
      return;
    }
    this.#reserve(NUMBER_BYTES_MAX);
    this.#length = begun;
    const bytesOfLength = length < 2 ** 14 ? 2 : length < 2 ** 21 ? 3 : length < 2 ** 28 ? 4 : 5;
    this.#bytes.copyWithin(begun + bytesOfLength, start, start + length);
    this.#varint(length);
    this.#length += length;
  }

  #plain(value: string, units: number): boolean {
    const bytes = this.#bytes;
    let at = this.#length;
    bytes[at++] = units;
    for (let i = 0; i < units; i++) {
      const unit = value.charCodeAt(i);
      if (unit > 127) return false;
      bytes[at++] = unit;
    }
    this.#length = at;
    return true;
  }

  #varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new MessageError(`${value} cannot be sent as a number`);
    const bytes = this.#bytes;
    let at = this.#length;
    let rest = value;
    while (rest >= SMALL) {
      bytes[at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest > 127) {
      bytes[at++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    bytes[at++] = rest;
    this.#length = at;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + bytes));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** Throws MessageError at whatever is not well-formed, and at numbers over 2^53 - 1. */
export class ProtoReader {
  /** Of the next byte. */
  at = 0;
  readonly #bytes: Buffer;
  readonly #fieldsMax: number;
  #fields = 0;

  /** `fieldsMax`: what a frame may cost to read, whatever it says and however small it was when it came, compressed. */
  constructor(bytes: Buffer, fieldsMax = Number.POSITIVE_INFINITY) {
    this.#bytes = bytes;
    this.#fieldsMax = fieldsMax;
  }

  get length(): number {
    return this.#bytes.length;
  }

  number(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.at++];
    if (byte !== undefined && byte < 128) return byte;
    let value = 0;
    let scale = 1;
    for (let i = 1; i <= VARINT_BYTES_MAX; i++) {
      if (byte === undefined) throw new MessageError('the frame ends too early');
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (!Number.isSafeInteger(value)) throw new MessageError('a number is over 2^53 - 1');
        return value;
      }
      scale *= 128;
      byte = bytes[this.at++];
    }
    throw new MessageError('a number is longer than the format has it');
  }

  /** A field begins: its number and kind. */
  tag(): number {
    this.countFields(1);
    return this.number();
  }

  /** So many fields are read elsewhere. */
  countFields(count: number): void {
    this.#fields += count;
    if (this.#fields > this.#fieldsMax)
      throw new MessageError(`a frame has more than ${this.#fieldsMax} fields; send it in several`);
  }

  bool(): boolean {
    return this.number() !== 0;
  }

  text(): string {
    const end = this.end();
    const { at } = this;
    this.at = end;
    return end === at ? '' : this.#bytes.toString('utf8', at, end);
  }

  /** Adds a list of numbers as proto3 packs it. */
  numbers(list: number[]): void {
    const end = this.end();
    while (this.at < end) list.push(this.number());
    this.ended(end);
  }

  /** A message or a list begins: where it ends. */
  end(): number {
    const end = this.number() + this.at;
    if (end > this.#bytes.length) throw new MessageError('the frame ends too early');
    return end;
  }

  /** Goes over a field that is not known here. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        for (let i = 0; i < VARINT_BYTES_MAX; i++) {
          const byte = this.#bytes[this.at++];
          if (byte === undefined) break;
          if (byte < 128) return;
        }
        break;
      case FIXED64:
        this.at += 8;
        break;
      case LENGTH:
        this.at = this.end();
        break;
      case FIXED32:
        this.at += 4;
        break;
      default:
        throw new MessageError(`the frame has a field of the unknown kind ${tag & 7}`);
    }
    if (this.at > this.#bytes.length) throw new MessageError('the frame ends too early');
  }

  /** To be called where a message ends: a field that runs over its end is no field of it. */
  ended(end: number): void {
    if (this.at !== end) throw new MessageError('a field runs over the end of its message');
  }

  slice(start: number, end: number): Buffer {
    return this.#bytes.subarray(start, end);
  }

  all(): Buffer {
    return this.#bytes;
  }
}

/** Lists that are not empty were made here. A copy for each item would let one frame with many of them stop the process. */
export function added<T>(list: readonly T[], item: T): readonly T[] {
  if (list.length === 0) return [item];
  (list as T[]).push(item);
  return list;
}
