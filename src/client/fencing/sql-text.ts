/**
 * Names and texts as PostgreSQL reads them. What is quoted here ends up in statements that people run as owner of their
 * tables, so a name can never become a statement, whatever it contains.
 */

/** Longer names are cut off by PostgreSQL without a word, and then two of them may be one. */
const IDENTIFIER_BYTES_MAX = 63;

/** A table's name, or its schema and name. A dot in a plain name is part of the name. */
export type TableName = string | readonly [schema: string, table: string];

export function quoteIdentifier(name: string): string {
  const bytes = new TextEncoder().encode(name).length;
  if (name === '' || name.includes('\0') || !name.isWellFormed())
    throw new RangeError(`not a name that PostgreSQL takes: ${JSON.stringify(name)}`);
  if (bytes > IDENTIFIER_BYTES_MAX)
    throw new RangeError(`${JSON.stringify(name)} is longer than PostgreSQL's ${IDENTIFIER_BYTES_MAX} bytes`);
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteTable(table: TableName): string {
  // Plain JavaScript may leave an option out.
  if (table === undefined) throw new RangeError('the name of a table is missing');
  return typeof table === 'string' ? quoteIdentifier(table) : table.map(quoteIdentifier).join('.');
}

/** Independent of `standard_conforming_strings`: a text with backslashes is written in the form that escapes them. */
export function quoteLiteral(text: string): string {
  if (text.includes('\0') || !text.isWellFormed())
    throw new RangeError(`not a text that PostgreSQL takes: ${JSON.stringify(text)}`);
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? `E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/** Text between dollar signs, with a tag that does not occur in it. */
export function dollarQuote(text: string): string {
  let tag = '$leasehold$';
  for (let number = 1; text.includes(tag); number++) tag = `$leasehold${number}$`;
  return `${tag}${text}${tag}`;
}
