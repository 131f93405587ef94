/**
 * The disk of one etcd member: a small file system of its own in a file, mounted by root. It can be filled up, and it can be frozen for moments,
 * which is what a slow `fdatasync` is to etcd: its binary is static, so nothing can be loaded before it.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const BYTES = 320 * 1024 * 1024;
const UNMOUNT_TRIES = 50;

export class SmallDisk {
  readonly folder: string;
  readonly #image: string;
  #isFrozen = false;

  private constructor(image: string, folder: string) {
    this.#image = image;
    this.folder = folder;
  }

  /** Null: this machine does not let us mount one. */
  static make(parent: string): SmallDisk | null {
    const [image, folder] = [join(parent, 'disk.img'), join(parent, 'disk')];
    try {
      writeFileSync(image, '');
      truncateSync(image, BYTES);
      mkdirSync(folder);
      run('mkfs.ext4', '-q', '-m', '0', image);
      run('mount', '-o', 'loop', image, folder);
      return new SmallDisk(image, folder);
    } catch {
      rmSync(image, { force: true });
      return null;
    }
  }

  /** No write gets through in these moments. */
  async freezeFor(ms: number): Promise<void> {
    this.#isFrozen = true;
    run('fsfreeze', '-f', this.folder);
    await pause(ms);
    this.thaw();
  }

  thaw(): void {
    if (this.#isFrozen) run('fsfreeze', '-u', this.folder);
    this.#isFrozen = false;
  }

  /** Takes all that is free. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.folder);
    try {
      run('dd', 'if=/dev/zero', `of=${join(this.folder, 'filler')}`, `bs=${bsize}`, `count=${bavail + 1}`);
    } catch {
      // It ended when the disk was full.
    }
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  free(): void {
    rmSync(join(this.folder, 'filler'), { force: true });
  }

  async remove(): Promise<void> {
    this.thaw();
    for (let tries = 1; ; tries++) {
      try {
        run('umount', this.folder);
        break;
      } catch (error) {
        // Processes that were ended a moment ago may have it open still.
        if (tries === UNMOUNT_TRIES) throw error;
        await pause(100);
      }
    }
    rmSync(this.#image, { force: true });
  }
}

function run(command: string, ...args: readonly string[]): void {
  execFileSync(command, args, { stdio: 'pipe' });
}
