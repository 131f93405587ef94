/** What the memory engine does beyond the contract: crashes, lost answers, outages, and being repeatable. */
import { describe, expect, test, vi } from 'vitest';
import { LogUnavailableError } from './errors.ts';
import {
  appendEntries,
  entryAfter,
  readAll,
  START,
  seededRandom,
  seedOfRun,
  settle,
  VirtualTimers,
} from './log.fixture.ts';
import { MemoryLog, type MemoryLogFaults } from './memory-log.ts';
import { MemoryStore } from './memory-store.ts';
import type { Leadership } from './port.ts';

function makeFaults(options: Partial<Omit<MemoryLogFaults, 'timers'>> & { seed?: number } = {}) {
  const timers = new VirtualTimers({ running: false });
  const random = seededRandom(options.seed ?? 1);
  return { timers, random, latencyMs: () => 10, ...options };
}

/** Waits for `promise` while virtual time runs. */
async function during<T>(timers: VirtualTimers, promise: Promise<T>): Promise<T> {
  const settled = promise.catch(() => undefined);
  await Promise.all([timers.run(), settled]);
  return promise;
}

describe('without faults', () => {
  test('calls are answered without any timer', async () => {
    const log = new MemoryLog(new MemoryStore('lineage-1'));
    let macrotasks = 0;
    setImmediate(() => {
      macrotasks += 1;
    });
    const leadership = await log.campaign('server-a');
    await appendEntries(log, leadership, 100);
    expect(macrotasks).toBe(0);
    expect(await log.head()).toMatchObject({ index: 100 });
  });

  test('entries are kept as they are, not copied', async () => {
    const log = new MemoryLog(new MemoryStore('lineage-1'));
    const [entry] = await appendEntries(log, await log.campaign('server-a'), 1);
    expect((await readAll(log, 1))[0]).toBe(entry);
  });

  test.each([
    { entries: 0, calls: 1 },
    { entries: 3, calls: 1 },
    { entries: 300, calls: 2 },
  ])('reading $entries entries takes $calls calls', async ({ entries, calls }) => {
    const store = new MemoryStore('lineage-1');
    const log = new MemoryLog(store);
    await appendEntries(log, await log.campaign('server-a'), entries);
    const readPage = vi.spyOn(store, 'readPage');
    expect(await readAll(log, 1)).toHaveLength(entries);
    expect(readPage).toHaveBeenCalledTimes(calls);
  });

  test('it has no faults to switch on', () => {
    const log = new MemoryLog(new MemoryStore('lineage-1'));
    expect(() => log.crash()).toThrow('faults');
    expect(() => log.setOutage(true)).toThrow('faults');
  });
});

describe('latency', () => {
  test('an append takes the time it is given', async () => {
    const faults = makeFaults();
    const log = new MemoryLog(new MemoryStore('lineage-1'), faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    const before = faults.timers.nowMs;
    await during(faults.timers, log.append(leadership, entryAfter(START)));
    expect(faults.timers.nowMs - before).toBeCloseTo(10);
  });

  test('who wins again while an append of the time before is under way is not kept from its first entry', async () => {
    const store = new MemoryStore('lineage-1');
    const latencies = [10, 10, 500];
    const faults = makeFaults({ latencyMs: () => latencies.shift() ?? 10 });
    const log = new MemoryLog(store, faults);
    const before = await during(faults.timers, log.campaign('server-a'));
    const [first] = await during(faults.timers, appendEntries(log, before, 1));
    const appending = log.append(before, entryAfter(first!));
    const next = log.campaign('server-a').then(async (leadership) => {
      return log.append(leadership, entryAfter(store.head()));
    });
    expect(await during(faults.timers, next)).toBe('committed');
    expect(['committed', 'deposed']).toContain(await appending);
  });

  test('a deposed leader may hear "committed" after its successor has taken over', async () => {
    const store = new MemoryStore('lineage-1');
    const faults = makeFaults();
    const log = new MemoryLog(store, faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    const appending = log.append(leadership, entryAfter(START));
    await faults.timers.run(faults.timers.nowMs + 9.999);
    expect(store.head().index).toBe(1);
    store.campaign('server-b');
    expect(await during(faults.timers, appending)).toBe('committed');
  });
});

describe('crash', () => {
  test('an append under way got through or not, and no promise of the dead handle settles', async () => {
    const outcomes = new Set<number>();
    for (let seed = 1; seed <= 40; seed += 1) {
      const store = new MemoryStore('lineage-1');
      const faults = makeFaults({ seed });
      const log = new MemoryLog(store, faults);
      const leadership = await during(faults.timers, log.campaign('server-a'));
      let settled = false;
      const mark = (): void => {
        settled = true;
      };
      log.append(leadership, entryAfter(START)).then(mark, mark);
      await faults.timers.run(faults.timers.nowMs + 1);
      log.crash();
      log.head().then(mark, mark);
      await faults.timers.run();
      await settle();
      expect(settled).toBe(false);

      const index = store.head().index;
      outcomes.add(index);
      const successor = new MemoryLog(store);
      expect(await readAll(successor, 1)).toHaveLength(index);
      const next = await successor.campaign('server-b');
      expect(await successor.append(next, entryAfter(store.head()))).toBe('committed');
    }
    expect([...outcomes].toSorted()).toEqual([0, 1]);
  });
});

describe('unknown outcomes (rule L2)', () => {
  test('they are settled by sending the identical entry again: each entry is there once', async () => {
    const seed = seedOfRun(process.env.LEASEHOLD_SEED);
    const store = new MemoryStore('lineage-1');
    const faults = makeFaults({ seed, unknownOutcomes: 0.2 });
    const log = new MemoryLog(store, faults);
    const leadership = await during(
      faults.timers,
      retrying(() => log.campaign('server-a')),
    );
    let position = START;
    for (let made = 0; made < 300; made += 1) {
      const entry = entryAfter(position);
      const outcome = await during(
        faults.timers,
        retrying(() => log.append(leadership, entry)),
      );
      expect(outcome, `seed ${seed}`).toBe('committed');
      position = entry;
    }
    expect(await readAll(new MemoryLog(store), 1), `seed ${seed}`).toHaveLength(300);
    expect(log.unknownOutcomes, `seed ${seed}`).toBeGreaterThan(20);
  });

  test('deposed meanwhile: told so, although the entry got through', async () => {
    const store = new MemoryStore('lineage-1');
    // Drawn per call: moment of arrival, then loss. Campaign: no loss. Append: the answer is lost. Its repeat: no loss.
    const drawn = [0.5, 0.9, 0.5, 0.15, 0.5, 0.9];
    const random = { ...seededRandom(1), fraction: () => drawn.shift() ?? 0.9 };
    const faults = makeFaults({ random, unknownOutcomes: 0.2 });
    const log = new MemoryLog(store, faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    const appending = log.append(leadership, entryAfter(START));
    await faults.timers.run(faults.timers.nowMs + 9);
    expect(store.head().index).toBe(1);
    store.campaign('server-b');
    expect(await during(faults.timers, appending)).toBe('deposed');
    expect(log.unknownOutcomes).toBe(1);
  });

  test('while the outcome of an entry is unknown no other one can take its index', async () => {
    const store = new MemoryStore('lineage-1');
    const faults = makeFaults();
    const log = new MemoryLog(store, faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    const entry = entryAfter(START);
    log.setOutage(true);
    await expect(during(faults.timers, log.append(leadership, entry))).rejects.toThrow(LogUnavailableError);
    log.setOutage(false);
    const other = entryAfter(START, { filler: 'another' });
    await expect(log.append(leadership, other)).rejects.toThrow('only that very entry');
    expect(await during(faults.timers, log.append(leadership, entry))).toBe('committed');
    expect(await during(faults.timers, log.append(leadership, entryAfter(entry)))).toBe('committed');
  });

  test('a new campaign settles the doubt: the log says what is there', async () => {
    const faults = makeFaults();
    const log = new MemoryLog(new MemoryStore('lineage-1'), faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    log.setOutage(true);
    await expect(during(faults.timers, log.append(leadership, entryAfter(START)))).rejects.toThrow();
    log.setOutage(false);
    const again = await during(faults.timers, log.campaign('server-a'));
    const other = entryAfter(START, { filler: 'another' });
    expect(await during(faults.timers, log.append(again, other))).toBe('committed');
  });
});

describe('outage (rule S11)', () => {
  test('a call is told after a bounded number of tries, and works again afterwards', async () => {
    const faults = makeFaults();
    const log = new MemoryLog(new MemoryStore('lineage-1'), faults);
    const leadership = await during(faults.timers, log.campaign('server-a'));
    log.setOutage(true);
    const before = faults.timers.nowMs;
    await expect(during(faults.timers, log.append(leadership, entryAfter(START)))).rejects.toThrow(
      LogUnavailableError,
    );
    expect(faults.timers.nowMs - before).toBeLessThan(1_000);
    expect(log.unknownOutcomes).toBe(5);
    log.setOutage(false);
    expect(await during(faults.timers, log.append(leadership, entryAfter(START)))).toBe('committed');
  });
});

test('lost leadership: appends are deposed until the next campaign', async () => {
  const store = new MemoryStore('lineage-1');
  const log = new MemoryLog(store);
  const leadership = await log.campaign('server-a');
  store.depose();
  expect(await log.append(leadership, entryAfter(START))).toBe('deposed');
  const again = await log.campaign('server-a');
  expect(await log.append(again, entryAfter(START))).toBe('committed');
});

test('the same seed gives the same run', async () => {
  const runOnce = async (seed: number): Promise<string> => {
    const store = new MemoryStore('lineage-1');
    const random = seededRandom(seed);
    const faults = makeFaults({ random, latencyMs: (port) => port.fraction() * 20, unknownOutcomes: 0.1 });
    const log = new MemoryLog(store, faults);
    const leadership: Leadership = await during(
      faults.timers,
      retrying(() => log.campaign('server-a')),
    );
    let position = START;
    const times: number[] = [];
    for (let made = 0; made < 50; made += 1) {
      const entry = entryAfter(position);
      await during(
        faults.timers,
        retrying(() => log.append(leadership, entry)),
      );
      position = entry;
      times.push(faults.timers.nowMs);
    }
    return JSON.stringify([times, log.unknownOutcomes, store.head()]);
  };
  const seed = seedOfRun(process.env.LEASEHOLD_SEED);
  expect(await runOnce(seed), `seed ${seed}`).toBe(await runOnce(seed));
  expect(await runOnce(seed), `seed ${seed}`).not.toBe(await runOnce(seed + 1));
});

/** As a leader does: goes on with the identical call while the log is unavailable. */
async function retrying<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LogUnavailableError)) throw error;
    }
  }
}
