/** A history's bytes as lines: what ends a line, and what does not. */
import { expect, it } from 'vitest';
import { linesOf } from './lines.ts';

async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function lines(text: string, size = 1_000): Promise<string[]> {
  const all: string[] = [];
  for await (const line of linesOf(inPieces(new TextEncoder().encode(text), size))) all.push(line);
  return all;
}

it('ends a line at a line feed alone, since a name may hold what else is taken for an end', async () => {
  const name = JSON.stringify('a\u2028b\u2029c\u0085d\ne\rf');
  expect(await lines(`${name}\n${name}\n`)).toEqual([name, name]);
});

it('gives the same lines whatever the pieces, with empty lines and a last one that is not ended', async () => {
  const text = 'a\n\nä€😀\nlast';
  for (let size = 1; size < 16; size++) expect(await lines(text, size)).toEqual(['a', '', 'ä€😀', 'last']);
  expect(await lines('')).toEqual([]);
});
