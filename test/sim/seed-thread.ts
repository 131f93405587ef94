/** A thread that runs one seed after another: see threads.ts. */
import { parentPort } from 'node:worker_threads';
import type { RunOptions } from './run.ts';
import { simulate } from './simulation.ts';

const port = parentPort;
if (port === null) throw new Error('this file is the start of a thread');
// What goes wrong in a run ends the thread, and is thrown where the run was asked for.
port.on('message', (options: RunOptions) => {
  void simulate(options).then((report) => port.postMessage(report));
});
