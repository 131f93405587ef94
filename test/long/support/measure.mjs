// Loaded into a measured process before its program (`--import`): on SIGUSR2 it collects garbage and writes what is left.
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

const prefix = process.env.LEASEHOLD_MEASURE_FILE;
const file = `${prefix}.${process.pid}`;
let count = 0;

/** Twice, with a turn in between: what finalizers let go is collected the second time. @param {() => void} collect */
async function measure(collect) {
  collect();
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  const { rss, heapUsed, external } = process.memoryUsage();
  // What V8 has from the system for its heap: of the young generation as much as it once needed, used or not.
  const heapResident = getHeapStatistics().total_physical_size;
  const descriptors = readdirSync('/proc/self/fd').length;
  const figures = { count: ++count, rss, heapUsed, heapResident, external, descriptors };
  writeFileSync(`${file}.new`, JSON.stringify(figures));
  renameSync(`${file}.new`, `${file}`);
}

if (isMainThread && prefix !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  process.on('SIGUSR2', () => void measure(collect));
}
