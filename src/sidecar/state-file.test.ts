/** What outlives the sidecar's process, on a real disk: rule A4. */
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileStateStore } from './state-file.ts';
import { MemoryStateStore, type SidecarRecord, type StateStore } from './state-store.ts';

let folder = '';
let path = '';
const open: FileStateStore[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-state-'));
  path = join(folder, 'state', 'sidecar.jsonl');
});

afterEach(() => {
  for (const store of open.splice(0)) store.close();
  rmSync(folder, { recursive: true });
});

function store(): FileStateStore {
  const opened = new FileStateStore(path);
  open.push(opened);
  return opened;
}

/** The process ends without a word, and the next one reads what is there. */
function nextLife(): FileStateStore {
  for (const old of open.splice(0)) old.close();
  return store();
}

const envelope = (id: string): SidecarRecord => ({
  type: 'envelope',
  id,
  client: 'c',
  ttlMs: 15_000,
  isTtlChosen: true,
  keepalive: 'app',
  maxHoldMs: 0,
  isSingle: false,
});
const session = (id: string, attach = 1): SidecarRecord => ({
  type: 'session',
  envelope: id,
  alias: 'jobs',
  session: 7,
  attach,
  secret: 'ab'.repeat(32),
  ttlMs: 15_000,
});
const grant = (id: string, token: number, request: string | null = null): SidecarRecord => ({
  type: 'grant',
  envelope: id,
  alias: 'jobs',
  name: `n\u2028${token}"\n`,
  mode: 'exclusive',
  permits: 1,
  owner: 'ü',
  reentrant: false,
  token,
  key: `k${token}`,
  request,
});
const settled = (id: string, token: number, request: string): SidecarRecord => ({
  ...(grant(id, token, request) as Extract<SidecarRecord, { type: 'grant' }>),
  type: 'settled',
  how: 'released',
  request,
});

const MARK = { lineage: 'l', epoch: 1, index: 1, hash: 'ab', seal: 'cd' };

const sorted = (from: StateStore): string[] =>
  from
    .load()
    .map((record) => JSON.stringify(record))
    .sort();

describe('rule A4: what was put is there after the end of the process', () => {
  test('records of every kind, the newest under each key, without what was removed', () => {
    const first = store();
    for (const record of [envelope('a'), session('a'), grant('a', 1), grant('a', 2, 'r'), envelope('b')])
      first.put(record);
    first.put(session('a', 2));
    first.put(settled('a', 3, 's'));
    first.remove({ type: 'grant', envelope: 'a', alias: 'jobs', key: 'k1' });
    first.put(grant('b', 9));
    first.removeEnvelope('b');
    const kept = [envelope('a'), session('a', 2), grant('a', 2, 'r'), settled('a', 3, 's')];
    expect(sorted(first)).toEqual(kept.map((record) => JSON.stringify(record)).sort());
    expect(sorted(nextLife())).toEqual(sorted(first));
    expect(sorted(nextLife())).toEqual(sorted(first));
  });

  test('it is on disk when put returns', () => {
    store().put(grant('a', 5));
    expect(readFileSync(path, 'utf8')).toContain('"token":5');
  });

  test('a random history on disk equals the same one in memory, over many lives', () => {
    const memory = new MemoryStateStore();
    let file = store();
    let seed = 7;
    const next = (below: number): number => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    for (let i = 0; i < 3_000; i++) {
      const [id, token] = [`e${next(5)}`, next(20)];
      const act = (to: StateStore): void => {
        const step = i % 7;
        if (step === 0) to.put(envelope(id));
        else if (step === 1) to.put(session(id, token));
        else if (step === 2) to.put(settled(id, token, `r${token}`));
        else if (step === 3) to.remove({ type: 'grant', envelope: id, alias: 'jobs', key: `k${token}` });
        else if (step === 4)
          to.remove({ type: 'settled', envelope: id, alias: 'jobs', request: `r${token}` });
        else if (token === 0) to.removeEnvelope(id);
        else to.put(grant(id, token));
      };
      act(memory);
      act(file);
      if (next(300) === 0) file = nextLife();
    }
    expect(sorted(nextLife())).toEqual(sorted(memory));
    expect(memory.size).toBe(memory.load().length);
  });
});

describe('a file that was cut off or scribbled in', () => {
  test.each([1, 5, 40])(
    'loses %i bytes of its last line: the others stay, and what follows is whole',
    (bytes) => {
      const first = store();
      for (const record of [envelope('a'), session('a'), grant('a', 1)]) first.put(record);
      truncateSync(path, statSync(path).size - bytes);
      const second = nextLife();
      expect(second.load()).toEqual([envelope('a'), session('a')]);
      second.put(grant('a', 2));
      expect(nextLife().load()).toEqual([envelope('a'), session('a'), grant('a', 2)]);
    },
  );

  test('a broken line in the middle costs that line alone', () => {
    const first = store();
    first.put(envelope('a'));
    // A write that got half through, and the store goes on behind it.
    appendFileSync(path, '\n\0\0\0\nnull\n7\n"text"\n{}\n{"put":{"type":"gra');
    first.put(session('a'));
    expect(nextLife().load()).toEqual([envelope('a'), session('a')]);
  });

  /** Each of them ended every sidecar that was started on the file, at once or when it connected. */
  test.each<readonly [string, object]>([
    ['nothing', { put: null }],
    ['nothing to remove', { remove: null }],
    ['a session without a secret', { put: { ...session('a'), secret: undefined } }],
    ['a secret that is a number', { put: { ...session('a'), secret: 5 } }],
    ['a session over 2^53', { put: { ...session('a'), session: 2 ** 53 } }],
    ['the last attach number there is', { put: { ...session('a'), attach: 2 ** 53 - 1 } }],
    ['a fraction of an attach number', { put: { ...session('a'), attach: 1.5 } }],
    ['a TTL of 0', { put: { ...envelope('b'), ttlMs: 0 } }],
    ['a TTL that is a text', { put: { ...envelope('b'), ttlMs: '15000' } }],
    ['a TTL of years', { put: { ...envelope('b'), ttlMs: 1e12 } }],
    ['an unknown way to live', { put: { ...envelope('b'), keepalive: 'sometimes' } }],
    ['a negative mark', { put: { type: 'mark', alias: 'jobs', mark: { ...MARK, epoch: -1 } } }],
    ['a mark of no lineage', { put: { type: 'mark', alias: 'jobs', mark: { ...MARK, lineage: 5 } } }],
    ['an empty mark', { put: { type: 'mark', alias: 'jobs', mark: null } }],
    ['a grant of no token', { put: { ...grant('a', 1), token: 'x' } }],
  ])('%s is left out, and counted', (_what, line) => {
    const first = store();
    first.put(envelope('a'));
    appendFileSync(path, `\n${JSON.stringify(line)}`);
    first.put(session('a', 2));
    const second = nextLife();
    expect(second.load()).toEqual([envelope('a'), session('a', 2)]);
    expect(second.damaged).toBe(1);
    expect(nextLife().damaged).toBe(0);
  });

  test('a folder in its place is named', () => {
    mkdirSync(path, { recursive: true });
    expect(() => new FileStateStore(path)).toThrow(`${path} cannot be read: Error: EISDIR`);
  });

  test('a link in its place is replaced, and what it leads to is left alone', () => {
    const target = join(folder, 'elsewhere');
    writeFileSync(target, 'not ours');
    mkdirSync(join(folder, 'state'));
    symlinkSync(target, path);
    store().put(envelope('a'));
    expect(readFileSync(target, 'utf8')).toBe('not ours');
    expect(nextLife().load()).toEqual([envelope('a')]);
  });

  test('an empty file, and none at all, are beginnings', () => {
    expect(store().load()).toEqual([]);
    writeFileSync(path, '');
    expect(nextLife().load()).toEqual([]);
  });
});

describe('rule L6: the format of the file', () => {
  test('stands in its first line; a file that does not say it is read as well', () => {
    store().put(envelope('a'));
    expect(readFileSync(path, 'utf8').split('\n')[0]).toBe('{"format":1}');
    writeFileSync(path, `\n${JSON.stringify({ put: session('a') })}`);
    expect(nextLife().load()).toEqual([session('a')]);
  });

  test.each(['2', '0', '"1"', 'null'])('%s is refused, and the file stays as it is', (format) => {
    store();
    const text = `{"format":${format}}\n${JSON.stringify({ put: envelope('a') })}\n`;
    writeFileSync(path, text);
    expect(() => new FileStateStore(path)).toThrow(
      `sidecar.jsonl is of format ${format}; this program knows format 1`,
    );
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

describe('it holds secrets', () => {
  test('readable by its owner alone: the file, its folder, and every file that takes its place', () => {
    const first = store();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'state')).mode & 0o777).toBe(0o700);
    first.put(session('a'));
    chmodSync(path, 0o644);
    writeFileSync(`${path}.next`, 'left over', { mode: 0o644 });
    chmodSync(`${path}.next`, 0o644);
    nextLife();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(existsSync(`${path}.next`)).toBe(false);
  });
});

describe('it does not grow for ever', () => {
  test('history is dropped when it is most of the file', () => {
    const first = store();
    first.put(envelope('a'));
    for (let i = 0; i < 25_000; i++) {
      first.put(grant('a', i));
      first.remove({ type: 'grant', envelope: 'a', alias: 'jobs', key: `k${i}` });
    }
    expect(readFileSync(path, 'utf8').split('\n').length).toBeLessThan(10_002);
    expect(first.load()).toEqual([envelope('a')]);
    expect(nextLife().load()).toEqual([envelope('a')]);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(3);
  });

  test('many records are kept, and rewritten only now and then', () => {
    const first = store();
    for (let i = 0; i < 20_000; i++) first.put(grant(`e${i % 100}`, i));
    expect(first.load()).toHaveLength(20_000);
    expect(nextLife().load()).toHaveLength(20_000);
  });
});
