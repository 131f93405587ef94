// Loaded into a measured process before its program (`--import`): on SIGUSR2 it collects garbage and writes what is left.
import { readdirSync, renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
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
  const descriptors = readdirSync('/proc/self/fd').length;
  writeFileSync(`${file}.new`, JSON.stringify({ count: ++count, rss, heapUsed, external, descriptors }));
  renameSync(`${file}.new`, `${file}`);
}

if (isMainThread && prefix !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  process.on('SIGUSR2', () => void measure(collect));
}
