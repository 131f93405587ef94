/**
 * A history's bytes as lines. Only a line feed ends one: names, owners and keys may hold every other character, also those that
 * node:readline takes for the end of a line (U+2028, U+2029), and JSON writes these as they are.
 */
import { HistoryFormatError, LINE_LENGTH_MAX } from './read.ts';

/** Throws HistoryFormatError before more of a line is kept than is ever read. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let line = 1;
  let begun: string[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    begun.push(first);
    length += first.length;
    for (const next of others) {
      yield begun.join('');
      line += 1;
      begun = [next];
      length = next.length;
    }
    if (length > LINE_LENGTH_MAX)
      throw new HistoryFormatError(line, `longer than ${LINE_LENGTH_MAX} characters`);
  }
  const last = begun.join('') + decoder.decode();
  if (last !== '') yield last;
}
