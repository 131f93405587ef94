/** Case I01 with a million names: its own file, since it measures the memory of its process. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { TestGroup, traceOf } from '../../test/support/core.ts';

const NAMES = 1_000_000;
const BATCH = 1_000;
const TIMEOUT_MS = 180_000;
/** Half of the names pass before the first measurement, so that compiled code and grown buffers are in both. */
const LEFT_OVER_BYTES_MAX = 4 * 1024 * 1024;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

/** Takes and gives back the names from `from` to `to`, each once; leaves only outcomes that the next call settles. */
function useNames(group: TestGroup, sessions: readonly number[], from: number, to: number): void {
  for (let first = from; first < to; first += BATCH) {
    const requests = Array.from({ length: BATCH }, (_, i) =>
      group.acquireCommand(sessions[i % sessions.length] as number, `merchant-${first + i}`),
    );
    const { results } = group.run(requests, 1);
    const releases = requests.map(({ session, name, key }, i) => {
      const result = results[i];
      const token = result?.type === 'granted' ? result.token : 0;
      return group.releaseCommand(session, name, token, { acks: [key] });
    });
    const answers = group.run(releases, 1).results;
    expect(answers.every(({ type }) => type === 'done')).toBe(true);
  }
}

it('case I01: a million distinct names, taken and given back: memory and state return to the start', {
  timeout: TIMEOUT_MS,
}, () => {
  const group = new TestGroup({ checked: false });
  const sessions = Array.from({ length: 10 }, () => group.open());
  const before = traceOf(group.state).slice(1);
  useNames(group, sessions, 0, NAMES / 2);
  const half = heapBytes();
  useNames(group, sessions, NAMES / 2, NAMES);
  const whole = heapBytes();
  expect(group.state.lastToken).toBe(NAMES);
  expect(traceOf(group.state).slice(1)).toEqual(before);
  expect(group.state.timers.size).toBe(0);
  expect(whole - half).toBeLessThan(LEFT_OVER_BYTES_MAX);
});
