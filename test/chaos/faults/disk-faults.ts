/** The disk under one etcd member: slow, and full. */
import { setTimeout as pause } from 'node:timers/promises';
import { ETCDS } from '../../support/group/group-bench.ts';
import type { Fault } from './fault.ts';

const lane = 'processes';
/** The member that lies on the small disk. */
export const DISK_MEMBER = ETCDS[2] as string;
const FULL_MS = 4_000;

export const diskFaults: readonly Fault[] = [
  {
    name: 'slow fdatasync of an etcd member',
    lane,
    needs: 'root',
    seconds: 5,
    run: async ({ disk }, random) => {
      if (disk === null) return false;
      for (let pulse = 0; pulse < 8; pulse++) {
        await disk.freezeFor(random.between(50, 700));
        await pause(random.between(20, 300));
      }
      return true;
    },
  },
  {
    name: 'full disk of an etcd member',
    lane,
    needs: 'root',
    seconds: 8,
    run: async ({ disk, bench }) => {
      if (disk === null) return false;
      disk.fill();
      const wasFull = disk.freeBytes === 0;
      await pause(FULL_MS);
      disk.free();
      // It may have ended, as etcd does when its log cannot be written.
      await bench.group.start([DISK_MEMBER]);
      for (const name of ETCDS)
        await bench
          .etcd(name)
          .disarm()
          .catch(() => undefined);
      return wasFull;
    },
  },
];
