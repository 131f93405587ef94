/**
 * `npm run bench`: all measurements in one run, so that they can be compared with each other. `--only PART[,PART]` runs some,
 * `--seconds N` is the length of each measurement (default 5), `--json` prints one JSON object a line.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { endWhenInterrupted } from './endings.ts';
import { locksPart, sessionsPart } from './parts/crowds.ts';
import { failOverPart } from './parts/fail-over.ts';
import { groupPart } from './parts/group.ts';
import { peersPart } from './parts/peers.ts';
import { httpPart, replicaPart } from './parts/replica.ts';
import { Report } from './report.ts';

interface Part {
  readonly title: string;
  readonly run: (report: Report, seconds: number) => Promise<void>;
}

const PARTS: Readonly<Record<string, Part>> = {
  replica: { title: 'One replica, in this process, on the embedded log', run: replicaPart },
  http: { title: 'The HTTP API of a leasehold dev process', run: httpPart },
  failover: { title: 'Fail-over of such a group', run: failOverPart },
  group: {
    title: 'One group: three etcd members, three lock servers, load from another process',
    run: groupPart,
  },
  sessions: { title: 'Many sessions', run: sessionsPart },
  locks: { title: 'Very many locks held', run: locksPart },
  peers: { title: 'Locks on one server of another kind', run: peersPart },
};

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
if (!(seconds >= 1 && seconds <= 600)) throw new RangeError('--seconds takes 1 to 600');
const wanted = values.only === '' ? Object.keys(PARTS) : values.only.split(',');
for (const name of wanted) {
  if (PARTS[name] === undefined) {
    throw new RangeError(`--only takes ${Object.keys(PARTS).join(', ')}; there is no ${name}`);
  }
}

endWhenInterrupted();
const report = new Report(values.json);
const load = (): string => loadavg()[0]?.toFixed(2) ?? '?';
report.figures('this machine', { 'load before': load() });
for (const name of wanted) {
  const part = PARTS[name] as Part;
  report.part(`${name}: ${part.title}`);
  await part.run(report, seconds);
}
