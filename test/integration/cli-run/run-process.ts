/** A real `leasehold run` with its watchdog and its CMD, and what CMD wrote while it had the lock. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../../support/dev/lock-api.ts';

const ROOT = join(import.meta.dirname, '../../..');
const START_MS_MAX = 25_000;
/** Of a CMD that writes every 200 ms, or seldom on a busy machine. */
const SEVERAL_LINES_MS = 1_500;
const READY_MS = 300;
/** Signal 15 in the masks of /proc. */
const TERM_BIT = 1n << 14n;

/** Writes its token to a file again and again, until it is ended. */
export const WORK =
  'echo "begin $LEASEHOLD_TOKEN" >>"$0"; while :; do echo "at $LEASEHOLD_TOKEN" >>"$0"; sleep 0.2; done';

/** Does not end when it is asked to. */
export const STUBBORN = `trap '' TERM; ${WORK}`;

export interface RunOptions {
  readonly url: string;
  readonly name: string;
  readonly args?: readonly string[];
  /** For a shell; `$0` is `file`. */
  readonly script: string;
  readonly file: string;
  readonly input?: string;
}

const running = new Set<RunProcess>();
process.once('exit', () => {
  for (const run of running) run.end();
});

export class RunProcess {
  readonly exited: Promise<number | null>;
  stdout = '';
  stderr = '';
  readonly #process: ChildProcess;
  #watchdog = 0;

  constructor({ url, name, args = ['--wait', '60s'], script, file, input = '' }: RunOptions) {
    const words = ['src/cli/main.ts', 'run', name, ...args, '--url', url, '--', 'sh', '-c', script, file];
    this.#process = spawn(process.execPath, words, { cwd: ROOT, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.#process.stdin?.on('error', () => undefined);
    this.#process.stdin?.end(input);
    running.add(this);
    this.exited = new Promise((resolve) => {
      this.#process.once('exit', (code) => {
        running.delete(this);
        resolve(code);
      });
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** Whatever a failed test left of it: a watchdog that runs again ends itself and CMD. */
  end(): void {
    this.kill('SIGCONT');
    this.kill('SIGKILL');
    if (this.#watchdog !== 0 && isAlive(this.#watchdog)) process.kill(this.#watchdog, 'SIGCONT');
  }

  /** Id of its watchdog, when that is ready. */
  async watchdog(): Promise<number> {
    const pid = await this.#childPid((words) => words.includes('watchdog.ts'));
    this.#watchdog = pid;
    await eventually(() => catchesTerm(pid), START_MS_MAX);
    // It says that it is ready a few lines after that; stopped between the two it would let no CMD come to its gate.
    await pause(READY_MS);
    return pid;
  }

  /** Id of the process that is or will be CMD, once the watchdog has been told of it. */
  async cmd(): Promise<number> {
    const pid = await this.#childPid((words) => !words.includes('watchdog.ts'));
    // The wrapper tells in the turn in which it starts CMD; stopped in the middle of that it has told nobody yet.
    await pause(READY_MS);
    return pid;
  }

  async #childPid(isIt: (words: string) => boolean): Promise<number> {
    let found = 0;
    await eventually(() => {
      found = childrenOf(this.pid).find(({ words }) => isIt(words))?.pid ?? 0;
      return found !== 0 || this.#process.exitCode !== null;
    }, START_MS_MAX);
    if (found === 0) throw new Error(`it has ended: ${this.stderr}`);
    return found;
  }
}

function childrenOf(pid: number): { readonly pid: number; readonly words: string }[] {
  try {
    const lines = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(pid)], { encoding: 'utf8' });
    return [...lines.matchAll(/^ *(\d+) (.*)$/gm)].map(([, id, words = '']) => ({ pid: Number(id), words }));
  } catch {
    return [];
  }
}

/** The watchdog sets up its handlers of signals right before it says that it is ready. */
function catchesTerm(pid: number): boolean {
  const caught = /^SigCgt:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return (BigInt(`0x${caught}`) & TERM_BIT) !== 0n;
}

/** A process that has ended but was not collected yet does nothing any more. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

export function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}

/** Waits until `count` CMDs have begun. */
export function begun(file: string, count: number, limitMs = 25_000): Promise<number> {
  return eventually(() => linesOf(file).filter((line) => line.startsWith('begin')).length >= count, limitMs);
}

/** Waits until a second CMD has begun, and then long enough for the first one to write among its lines if it still could. */
export async function nextBegun(file: string, limitMs?: number): Promise<void> {
  await begun(file, 2, limitMs);
  await pause(SEVERAL_LINES_MS);
}

/**
 * Tokens in the order of the first line under each. Throws when a line under one stands after a line under another that is newer:
 * appended lines stand in the order in which they were written, so that is two CMDs at once.
 */
export function tokensInTurn(file: string): number[] {
  const tokens: number[] = [];
  for (const line of linesOf(file)) {
    const token = Number(line.split(' ')[1]);
    if (token === tokens.at(-1)) continue;
    if (tokens.some((earlier) => earlier >= token))
      throw new Error(`${file}: token ${token} came back:\n${linesOf(file).join('\n')}`);
    tokens.push(token);
  }
  return tokens;
}
