/**
 * The demo tells the truth: it passes because the fence refused a late write, it fails without the fence, and it leaves
 * nothing behind. Each run is the real program with its own processes, as `npm run demo` starts it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { check } from '../../demo/checks.ts';
import { type Batch, PayoutTable, readBatches } from '../../demo/payouts.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CSV_FILE = new URL('../../demo/payout-batches.csv', import.meta.url);
const DEMO_TEST_MS_MAX = 90_000;
const OLD = { runner: 'A', token: 7 };
const NEW = { runner: 'B', token: 8 };

/** A run of the demo whose temporary files are all below `folder`. */
class DemoRun implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-test-'));
  output = '';
  readonly #process: ChildProcess;
  readonly #closed: Promise<unknown[]>;

  constructor(...flags: readonly string[]) {
    this.#process = spawn(process.execPath, ['demo/main.ts', ...flags], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: this.folder },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#closed = once(this.#process, 'close');
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
  }

  async exitCode(): Promise<unknown> {
    const [code] = await this.#closed;
    return code;
  }

  /** Resolves when the output contains `text`; rejects if the demo ends without. */
  async says(text: string): Promise<void> {
    while (!this.output.includes(text)) {
      const stdout = this.#process.stdout;
      if (stdout === null) throw new Error('the demo has no output');
      const isOver = await Promise.race([
        once(stdout, 'data').then(() => false),
        this.#closed.then(() => true),
      ]);
      if (isOver && !this.output.includes(text))
        throw new Error(`the demo never said "${text}":\n${this.output}`);
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Of the processes that the demo says it has started, those that still run. */
  survivors(): readonly number[] {
    const pids = [...this.output.matchAll(/\(pid (\d+)\)/g)].map(([, pid]) => Number(pid));
    if (pids.length !== 3) throw new Error(`expected three processes:\n${this.output}`);
    return pids.filter((pid) => isAlive(pid));
  }

  leftovers(): readonly string[] {
    return readdirSync(this.folder);
  }

  /** The token of each runner's grant. */
  tokenOf(runner: string): number {
    return Number(new RegExp(`s  ${runner} +(\\d+) +granted`).exec(this.output)?.[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('SIGTERM');
    await this.#closed;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

// At the same time: they mostly wait for leases to end.
describe.concurrent('npm run demo', () => {
  test(
    'passes: the late write is refused and each batch is paid once',
    async ({ expect }) => {
      await using demo = new DemoRun();
      const code = await demo.exitCode();
      expect(demo.output).toMatch(/A +\d+ +writes PB-07314: REFUSED, 0 rows changed/);
      expect(demo.output).toContain('reports the stale token; Leasehold says');
      expect(demo.output).toContain('every batch was paid exactly once (40 payments for 40 batches)');
      expect(demo.output).not.toContain('FAILED');
      expect(demo.output).toMatch(/^PASS: /m);
      expect(demo.tokenOf('B')).toBeGreaterThan(demo.tokenOf('A'));
      expect(code).toBe(0);
      expect([...demo.survivors(), ...demo.leftovers()]).toEqual([]);
    },
    DEMO_TEST_MS_MAX,
  );

  test(
    'without the fence the late write lands, is found in the ledger, and the demo fails',
    async ({ expect }) => {
      await using demo = new DemoRun('--without-fence');
      const code = await demo.exitCode();
      expect(demo.output).toMatch(/A +\d+ +writes PB-07314: it LANDS/);
      expect(demo.output).toMatch(
        /FAILED +every batch was paid exactly once .*PB-07314.* paid by B and by A/,
      );
      expect(demo.output).toMatch(/FAILED +A's late write was refused/);
      expect(demo.output).toMatch(/^FAIL: /m);
      expect(demo.output).not.toContain('PASS');
      expect(code).toBe(1);
      expect([...demo.survivors(), ...demo.leftovers()]).toEqual([]);
    },
    DEMO_TEST_MS_MAX,
  );

  test(
    'a Ctrl-C ends all of it, also the runner that is stopped',
    async ({ expect }) => {
      await using demo = new DemoRun();
      await demo.says('STOPPED');
      expect(demo.survivors()).toHaveLength(3);
      demo.kill('SIGINT');
      expect(await demo.exitCode()).toBe(130);
      expect(demo.output).toContain('ended by SIGINT');
      expect([...demo.survivors(), ...demo.leftovers()]).toEqual([]);
    },
    DEMO_TEST_MS_MAX,
  );
});

describe('the fenced table', () => {
  const batches = readBatches(CSV_FILE);

  function createTable(): PayoutTable {
    const table = PayoutTable.create(':memory:', batches);
    onTestFinished(() => table.close());
    return table;
  }

  test('the CSV has batches of different merchants and currencies, each id once', () => {
    expect(batches.length).toBeGreaterThanOrEqual(40);
    expect(new Set(batches.map(({ id }) => id)).size).toBe(batches.length);
    expect(new Set(batches.map(({ currency }) => currency)).size).toBeGreaterThan(3);
    expect(batches[0]).toEqual({
      id: 'PB-07301',
      merchant: 'merchant-42381',
      currency: 'USD',
      amountMinor: 38_255,
    });
  });

  test('once a newer holder has raised the fence, an older token pays nothing, paid before or not', () => {
    const table = createTable();
    const [first, ...rest] = batches.map(({ id }) => id);
    expect(table.raiseFence(OLD.token)).toBe(true);
    expect(table.pay({ batch: first!, ...OLD })).toBe('paid');
    expect(table.raiseFence(NEW.token)).toBe(true);
    const before = table.rows();
    for (const batch of [first!, ...rest]) expect(table.pay({ batch, ...OLD })).toBe('fenced');
    expect(table.rows()).toEqual(before);
    expect(table.ledger()).toHaveLength(1);
  });

  test('a batch that is added after the fence was raised is fenced too', () => {
    const table = createTable();
    table.raiseFence(NEW.token);
    const late: Batch = { id: 'PB-99999', merchant: 'merchant-1', currency: 'EUR', amountMinor: 100 };
    table.add(late);
    expect(table.pay({ batch: late.id, ...OLD })).toBe('fenced');
    expect(table.pay({ batch: late.id, ...NEW })).toBe('paid');
  });

  test('the fence never goes back, and the same holder may raise it again', () => {
    const table = createTable();
    expect(table.raiseFence(NEW.token)).toBe(true);
    expect(table.raiseFence(NEW.token)).toBe(true);
    expect(table.raiseFence(OLD.token)).toBe(false);
    expect(table.fence).toBe(NEW.token);
  });

  test('a batch is paid once under one token', () => {
    const table = createTable();
    const batch = batches[0]!.id;
    expect(table.pay({ batch, ...NEW })).toBe('paid');
    expect(table.pay({ batch, ...NEW })).toBe('notPending');
    expect(table.ledger()).toHaveLength(1);
  });

  test('the checks fail when a batch is missing, paid twice, or no late write was tried', () => {
    const table = createTable();
    const [first, second, ...rest] = batches.map(({ id }) => id);
    table.pay({ batch: first!, ...OLD });
    for (const batch of rest) table.pay({ batch, ...NEW });
    const failed = (lateBatch: string | null): readonly string[] =>
      check({ batches, table, lateBatch }).flatMap(({ name, isOk }) => (isOk ? [] : [name]));
    const [once, agree, , late] = check({ batches, table, lateBatch: null }).map(({ name }) => name);
    expect(failed(first!)).toEqual([once, agree]);
    table.pay({ batch: second!, ...NEW });
    expect(failed(first!)).toEqual([]);
    expect(failed(null)).toEqual([late]);
    table.payUnfenced({ batch: second!, ...OLD });
    expect(failed(second!)).toEqual([once, agree, late]);
  });
});
