/** Somebody sets the wall clock of a machine (cases E10, E12). */
import { setTimeout as pause } from 'node:timers/promises';
import { SERVERS } from '../../support/group/group-bench.ts';
import type { Fault } from './fault.ts';

const HOUR_S = 3_600;

export const clockFaults: readonly Fault[] = [
  {
    name: 'wall clocks set by an hour and back',
    lane: 'processes',
    needs: 'libfaketime',
    seconds: 4,
    run: async ({ bench, clocks }, random) => {
      if (clocks === null) return false;
      const server = random.chance(0.7) ? await bench.leader() : random.pick(SERVERS);
      const names = random.chance(0.5) ? [server] : [server, random.pick(bench.sidecars)];
      const seconds = random.chance(0.5) ? HOUR_S : -HOUR_S;
      for (const name of names) clocks.step(name, seconds);
      await pause(random.between(1_000, 4_000));
      const isSet = await isFarOff(bench.planned(server).healthUrl);
      for (const name of names) clocks.step(name, random.between(-2, 2));
      return isSet;
    },
  },
];

/** A process says in each answer what time it is. */
async function isFarOff(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => null);
  await response?.body?.cancel();
  const told = Date.parse(response?.headers.get('date') ?? '');
  return Math.abs(told - Date.now()) > (HOUR_S / 2) * 1_000;
}
