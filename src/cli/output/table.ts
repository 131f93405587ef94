/**
 * Values and tables for people to read. What others have named (locks, owners, reasons) may hold any character: nothing printed
 * here can move the cursor, change colours or pass for a column.
 */
const PLAIN = /^[^\s"=]+$/u;
/** Control characters, invisible ones, half characters. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text as one word: as it is when it is plain, otherwise quoted, with unprintable characters written as numbers. */
export function word(text: string): string {
  const visible = text.replace(UNPRINTABLE, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`);
  return PLAIN.test(text) && visible === text ? text : `"${visible.replaceAll('"', '\\"')}"`;
}

/** Who holds or waits: applications need not say. */
export function person(owner: string): string {
  return owner === '' ? '(unnamed)' : word(owner);
}

/** `name=value` for each field that says something: empty, zero and false ones are left out. */
export function fields(object: object, hidden: readonly string[]): string {
  const shown = Object.entries(object).filter(
    ([name, value]) => !hidden.includes(name) && saysSomething(value),
  );
  return shown.map(([name, value]) => `${name}=${shownValue(value)}`).join(' ');
}

/** Columns as wide as their longest cell. Numbers (all cells of a column but its head) stand to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const columns = head.map((title, column) => [title, ...rows.map((row) => row[column] ?? '')]);
  // Not by Math.max with a list: a namespace may hold a million locks, and no call takes so many arguments.
  const widths = columns.map((cells) => cells.reduce((width, cell) => Math.max(width, cell.length), 0));
  const isNumeric = columns.map(
    ([, ...cells]) => cells.length > 0 && cells.every((cell) => /^\d+$/.test(cell)),
  );
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0, isNumeric[column] === true))
      .join('   ')
      .trimEnd(),
  );
}

/** Facts below each other, their values in one column. */
export function listing(facts: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...facts.map(([name]) => name.length));
  return facts.map(([name, value]) => `${name.padEnd(width)}   ${value}`);
}

/** Milliseconds since 1970 in ISO form. */
export function wallTime(wallMs: number): string {
  const date = new Date(wallMs);
  return Number.isNaN(date.getTime()) ? '-' : date.toISOString();
}

function pad(cell: string, width: number, isNumeric: boolean): string {
  return isNumeric ? cell.padStart(width) : cell.padEnd(width);
}

function saysSomething(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== '' && value !== 0 && value !== false;
}

function shownValue(value: unknown): string {
  if (typeof value === 'string') return word(value);
  if (value === null) return 'none';
  if (Array.isArray(value)) return value.map((item) => word(String(item))).join(',');
  return typeof value === 'object' ? `{${fields(value, [])}}` : String(value);
}
