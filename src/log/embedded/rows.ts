/** Values out of SQLite rows. A value of the wrong type can only come from a damaged file. */
import type { SQLOutputValue } from 'node:sqlite';
import { CorruptLogError } from '../port.ts';

export type Row = Record<string, SQLOutputValue>;

/** @throws CorruptLogError */
export function textOf(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new CorruptLogError(`column ${column} holds no text`);
  return value;
}

/** @throws CorruptLogError */
export function integerOf(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new CorruptLogError(`column ${column} holds no integer`);
  }
  return value;
}

/** @throws CorruptLogError */
export function bytesOf(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw new CorruptLogError(`column ${column} holds no bytes`);
  return value;
}
