/**
 * A process of its own that opens the log in the directory given and appends for ever: one line `acknowledged <index>` on stdout for each
 * entry, written before the next is sent. With a second argument `hold` it only opens. `refused <pid>`: somebody else has the directory.
 */
import { argv, stdout } from 'node:process';
import { LogInUseError } from '../errors.ts';
import { entryAfter, systemPorts } from '../log.fixture.ts';
import { openEmbeddedLog } from './embedded-log.ts';

const [, , directory, mode] = argv;
if (directory === undefined) throw new Error('usage: appender.fixture.ts DIRECTORY [hold]');

/** Resolves when the system has the line. A synchronous write would fail when the reader is slow and the pipe full. */
function tell(line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()));
  });
}

try {
  const log = await openEmbeddedLog({ directory, ...systemPorts() });
  await tell('open');
  const leadership = await log.campaign('appender');
  let position = await log.head();
  while (mode !== 'hold') {
    const entry = entryAfter(position, { bytes: 300 });
    const outcome = await log.append(leadership, entry);
    await tell(outcome === 'committed' ? `acknowledged ${entry.index}` : outcome);
    position = entry;
  }
} catch (error) {
  if (!(error instanceof LogInUseError)) throw error;
  await tell(`refused ${error.pid}`);
}
