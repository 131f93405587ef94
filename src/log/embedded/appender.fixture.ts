/**
 * A process of its own that opens the log in the directory given and appends for ever: one line `acknowledged <index>` on stdout for each
 * entry, written before the next is sent. With a second argument `hold` it only opens. `refused <pid>`: somebody else has the directory.
 */
import { writeSync } from 'node:fs';
import { argv } from 'node:process';
import { LogInUseError } from '../errors.ts';
import { entryAfter, systemPorts } from '../log.fixture.ts';
import { openEmbeddedLog } from './embedded-log.ts';

const STDOUT = 1;
const [, , directory, mode] = argv;
if (directory === undefined) throw new Error('usage: appender.fixture.ts DIRECTORY [hold]');

try {
  const log = await openEmbeddedLog({ directory, ...systemPorts() });
  writeSync(STDOUT, 'open\n');
  const leadership = await log.campaign('appender');
  let position = await log.head();
  while (mode !== 'hold') {
    const entry = entryAfter(position, { bytes: 300 });
    const outcome = await log.append(leadership, entry);
    writeSync(STDOUT, outcome === 'committed' ? `acknowledged ${entry.index}\n` : `${outcome}\n`);
    position = entry;
  }
} catch (error) {
  if (!(error instanceof LogInUseError)) throw error;
  writeSync(STDOUT, `refused ${error.pid}\n`);
}
