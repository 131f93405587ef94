/** Entries as bytes: what is written is read back, what is not an entry is refused in time (rule L6). */
import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { acquireCommand } from '../../../test/support/core.ts';
import { anyCommand, anyEntry, COMMANDS } from '../../../test/support/core-arbitraries.ts';
import { fc } from '../../../test/support/seeded.ts';
import type { Acquire, Command, Entry } from '../../api/entry.ts';
import { FormatError } from './bytes.ts';
import { decodeEntry, encodeEntry, sha256 } from './entry.ts';

const EMPTY: Entry = {
  format: 1,
  behaviour: 1,
  lineage: 'l',
  epoch: 1,
  index: 1,
  at: 0,
  wallMs: 0,
  previous: '',
  commands: [],
  eventHash: '',
};

function withCommands(...commands: Command[]): Entry {
  return { ...EMPTY, commands };
}

/** What decoding throws; fails when it throws anything but FormatError. Null: it decoded. */
function refusal(bytes: Uint8Array): FormatError | null {
  try {
    decodeEntry(bytes);
    return null;
  } catch (error) {
    if (error instanceof FormatError) return error;
    throw error;
  }
}

describe('round trip', () => {
  it.each(Object.entries(COMMANDS))('rule L6: any %s is read back as it was written', (_type, command) => {
    fc.assert(
      fc.property(command as fc.Arbitrary<Command>, (one) => {
        const entry = withCommands(one);
        expect(decodeEntry(encodeEntry(entry).bytes)).toEqual(entry);
      }),
    );
  });

  it('rule L6: any entry is read back as it was written, from a view of a larger buffer too', () => {
    fc.assert(
      fc.property(anyEntry(fc.array(anyCommand, { maxLength: 8 })), fc.nat(9), (entry, offset) => {
        const { bytes, hash } = encodeEntry(entry);
        expect(hash).toBe(sha256(bytes));
        const larger = new Uint8Array(bytes.length + 20).fill(255);
        larger.set(bytes, offset);
        expect(decodeEntry(larger.subarray(offset, offset + bytes.length))).toEqual(entry);
      }),
    );
  });

  it('rule L6: equal entries give equal bytes, whatever the order of keys in the configuration', () => {
    fc.assert(
      fc.property(COMMANDS.configure, (command) => {
        const { config, version } = command;
        const turned = config === null ? null : Object.fromEntries(Object.entries(config).reverse());
        const other = { config: turned, version, type: 'configure' } as Command;
        expect(encodeEntry(withCommands(other)).hash).toBe(encodeEntry(withCommands(command)).hash);
      }),
    );
  });

  it('rule L6: different entries give different bytes', () => {
    fc.assert(
      fc.property(anyCommand, anyCommand, (a, b) => {
        const isSame = encodeEntry(withCommands(a)).hash === encodeEntry(withCommands(b)).hash;
        if (isSame) expect(a).toEqual(b);
        else expect(a).not.toEqual(b);
      }),
    );
  });

  it('rule L6: an entry of 2,000 acquires comes through', () => {
    const commands = Array.from({ length: 2_000 }, (_, i) =>
      acquireCommand({ session: i, key: `k${i}`, name: `é-${i}`, acks: [`k${i - 1}`] }),
    );
    const entry = withCommands(...commands);
    expect(decodeEntry(encodeEntry(entry).bytes)).toEqual(entry);
  });
});

describe('what is not an entry', () => {
  it('rule L6: every truncation is a FormatError', () => {
    fc.assert(
      fc.property(anyCommand, (command) => {
        const { bytes } = encodeEntry(withCommands(command));
        for (let length = 0; length < bytes.length; length += 1 + (length >> 4)) {
          expect(refusal(bytes.subarray(0, length))).toBeInstanceOf(FormatError);
        }
      }),
    );
  });

  it('rule L6: bytes left over are a FormatError', () => {
    const { bytes } = encodeEntry(withCommands(acquireCommand({ session: 1, key: 'k' })));
    expect(refusal(new Uint8Array([...bytes, 0]))).toBeInstanceOf(FormatError);
  });

  it('rule L6: garbage is an entry that is written again as the same bytes, or a FormatError', () => {
    const isStrict = (bytes: Uint8Array): void => {
      if (refusal(bytes) !== null) return;
      expect(Buffer.from(encodeEntry(decodeEntry(bytes)).bytes)).toEqual(Buffer.from(bytes));
    };
    const damage = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(anyEntry(fc.array(anyCommand, { maxLength: 2 })), damage, (entry, changes) => {
        const bytes = new Uint8Array(encodeEntry(entry).bytes);
        for (const [place, value] of changes) bytes[place % bytes.length] = value;
        isStrict(bytes);
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        isStrict(bytes);
        isStrict(new Uint8Array([1, ...bytes]));
      }),
      { numRuns: 2_000 },
    );
  });

  it('rule L6: another format version is refused by its number', () => {
    const bytes = new Uint8Array(encodeEntry(EMPTY).bytes);
    bytes[0] = 2;
    expect(refusal(bytes)?.message).toContain('format 2');
  });

  const HUGE = [255, 255, 255, 255, 255, 255, 255, 15];
  const header = (commands: number[]): number[] => [1, 1, 1, 108, 1, 1, 0, 0, 0, 0, ...commands];
  const lies: [what: string, bytes: number[]][] = [
    ['commands', header(HUGE)],
    ['bytes of a text', [1, 1, ...HUGE]],
    ['acks', header([1, 8, 1, 1, 0, ...HUGE])],
    ['sessions', header([1, 5, 0, ...HUGE])],
    ['a number that never ends', [1, 1, 0, ...Array.from({ length: 100_000 }, () => 255)]],
  ];

  it.each(lies)(
    'rule L6: a length that promises too many %s costs neither time nor memory',
    (_what, bytes) => {
      const before = process.memoryUsage().rss;
      const started = performance.now();
      expect(refusal(new Uint8Array(bytes))).toBeInstanceOf(FormatError);
      expect(performance.now() - started).toBeLessThan(1_000);
      expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    },
  );

  const malformed: [what: string, bytes: number[]][] = [
    ['an unknown command', header([1, 16])],
    ['command number 0', header([1, 0])],
    ['a truth value of 2', header([1, 4, 1, 1, 2])],
    ['an unknown cause', header([1, 5, 2, 0])],
    ['an unknown mode', header([1, 6, 1, 1, 1, 107, 1, 120, 3, 1, 0, 0, 0, 0, 0, 0, 0])],
    ['text that is not UTF-8', header([1, 13, 1, 255, 0])],
    ['half a character in UTF-8', header([1, 13, 3, 0xed, 0xa0, 0x80, 0])],
    ['a number in more bytes than it needs', header([1, 11, 0x81, 0])],
    ['a number over 2^53', header([1, 11, 255, 255, 255, 255, 255, 255, 255, 16])],
    ['a configuration that is not JSON', header([1, 1, 1, 1, 123])],
    ['a configuration written another way', header([1, 1, 1, 5, 0x20, 0x6e, 0x75, 0x6c, 0x6c])],
  ];

  it.each(malformed)('rule L6: %s is a FormatError', (_what, bytes) => {
    expect(refusal(new Uint8Array(bytes))).toBeInstanceOf(FormatError);
  });

  it('the same bytes without their fault are an entry', () => {
    const whole = [
      header([0]),
      header([1, 4, 1, 1, 1]),
      header([1, 5, 1, 0]),
      header([1, 6, 1, 1, 1, 107, 1, 120, 2, 1, 0, 0, 0, 0, 0, 0, 0]),
      header([1, 8, 1, 1, 0, 0]),
      header([1, 11, 0x81, 1]),
      header([1, 11, 255, 255, 255, 255, 255, 255, 255, 15]),
      header([1, 13, 2, 0xc3, 0xa9, 0]),
      header([1, 1, 1, 4, 0x6e, 0x75, 0x6c, 0x6c]),
    ];
    for (const bytes of whole) expect(refusal(new Uint8Array(bytes))).toBeNull();
  });
});

describe('what cannot be written', () => {
  const halves = ['\ud800', 'a\udc00', `${'x'.repeat(60)}\ud83d`];

  it.each(halves)('rule L6: a text with half a character (%j) is refused in every field', (half) => {
    const acquire = acquireCommand({ session: 1, key: 'k' });
    const commands: Command[] = [
      { ...acquire, name: half },
      { ...acquire, key: half },
      { ...acquire, owner: half },
      { ...acquire, purpose: half },
      { ...acquire, acks: ['ok', half] },
      { type: 'release', session: 1, attach: 1, name: half, token: 1, key: '', acks: [] },
      { type: 'quarantine', name: half, reason: '' },
      { type: 'reportStale', session: 1, name: 'x', token: 1, resource: half },
    ];
    for (const command of commands) {
      expect(() => encodeEntry(withCommands(command))).toThrow(FormatError);
    }
    expect(() => encodeEntry({ ...EMPTY, lineage: half })).toThrow(FormatError);
  });

  it.each([-1, 0.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY])(
    'rule L6: the number %d is refused',
    (value) => {
      expect(() => encodeEntry(withCommands({ type: 'resign', epoch: value }))).toThrow(FormatError);
      expect(() => encodeEntry({ ...EMPTY, at: value })).toThrow(FormatError);
    },
  );

  it('rule L6: a mode that does not exist is refused', () => {
    const command = { ...acquireCommand({ session: 1, key: 'k' }), mode: 'other' as Acquire['mode'] };
    expect(() => encodeEntry(withCommands(command))).toThrow(FormatError);
  });

  it('a failed attempt leaves nothing behind for the next', () => {
    const expected = encodeEntry(EMPTY).hash;
    expect(() => encodeEntry({ ...EMPTY, at: -1 })).toThrow(FormatError);
    expect(encodeEntry(EMPTY).hash).toBe(expected);
  });
});
