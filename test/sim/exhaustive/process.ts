/** A process whose time and turns are moved from outside. */
import type { Random, Runtime } from '../../../src/platform/runtime.ts';
import type { Life } from '../world/process.ts';
import type { World } from '../world/world.ts';

interface Timed {
  readonly dueMs: number;
  action: (() => void) | null;
}

export class Process {
  readonly runtime: Runtime;
  readonly life: Life;
  isDead = false;
  readonly soon: (() => void)[] = [];
  readonly timers = new Set<Timed>();

  constructor(world: World) {
    let draws = 0;
    const random: Random = {
      hex: (bytes) => String(++draws).padStart(2 * bytes, '0'),
      fraction: () => 0.5,
    };
    this.runtime = {
      clock: { monotonicMs: () => world.nowMs, wallMs: () => 1_767_225_600_000 + Math.floor(world.nowMs) },
      timers: {
        soon: (action) => void this.soon.push(action),
        after: (delayMs, action) => {
          const timed: Timed = { dueMs: world.nowMs + delayMs, action };
          this.timers.add(timed);
          return { cancel: () => void this.timers.delete(timed) };
        },
      },
      random,
      logger: {
        debug: () => undefined,
        info: () => undefined,
        warn: () => undefined,
        error: () => undefined,
      },
    };
    this.life = { process: this, runtime: this.runtime } as unknown as Life;
  }

  turn(): boolean {
    const due = this.soon.splice(0);
    if (!this.isDead) for (const action of due) action();
    return due.length > 0;
  }

  tick(nowMs: number): void {
    for (const timed of [...this.timers]) {
      if (timed.dueMs > nowMs || !this.timers.delete(timed) || this.isDead) continue;
      timed.action?.();
    }
  }
}
