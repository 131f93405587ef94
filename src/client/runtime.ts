/**
 * Time, timers, chance and the surroundings of the process, as the library needs them. It has a port of its own, since the
 * one of src/platform brings a logger with it, and this library depends on nothing. This is the only file of the folder that
 * touches Node's globals; nothing is read when it is imported.
 */
// biome-ignore-all lint/style/noRestrictedGlobals: this is the library's port to them
// biome-ignore-all lint/nursery/noJsRestrictedProperties: this is the library's port to them
// biome-ignore-all lint/style/noProcessEnv: read when a client is made, never at import
// biome-ignore-all lint/correctness/noProcessGlobal: this is the library's port to it
import { randomBytes, randomInt } from 'node:crypto';
import { hostname } from 'node:os';

export interface Timer {
  cancel(): void;
}

export interface ClientRuntime {
  readonly clock: {
    /** Milliseconds since an arbitrary start, never going back. The only clock that leases are measured with. */
    monotonicMs(): number;
    /** Milliseconds since 1970; only to notice that the machine slept. */
    wallMs(): number;
  };
  readonly timers: {
    /** Runs `action` once, not before `delayMs` have passed. One in the background does not keep the process from ending. */
    after(delayMs: number, action: () => void, isBackground?: boolean): Timer;
  };
  readonly random: {
    /** `bytes` random bytes as lower-case hex. */
    hex(bytes: number): string;
    /** Uniform in [0, 1). */
    fraction(): number;
  };
}

/** Node's timers take delays up to this; a longer one would fire after 1 ms (case E02). */
const NODE_TIMER_MS_MAX = 2 ** 31 - 1;
const FRACTION_STEPS = 2 ** 32;
/** Longer than any process lives. */
const AS_LONG_AS_IT_TAKES_MS = 1e12;

/** A chain of Node's timers up to a moment on the monotonic clock: any delay is right. */
function after(delayMs: number, action: () => void, isBackground = false): Timer {
  const dueMs = performance.now() + delayMs;
  let handle: NodeJS.Timeout;
  const arm = (): void => {
    const leftMs = Math.ceil(dueMs - performance.now());
    handle = setTimeout(wake, Math.min(Math.max(leftMs, 0), NODE_TIMER_MS_MAX));
    if (isBackground) handle.unref();
  };
  const wake = (): void => {
    if (performance.now() < dueMs) arm();
    else action();
  };
  arm();
  return { cancel: () => clearTimeout(handle) };
}

export const systemRuntime: ClientRuntime = {
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  timers: { after },
  random: {
    hex: (bytes) => randomBytes(bytes).toString('hex'),
    fraction: () => randomInt(FRACTION_STEPS) / FRACTION_STEPS,
  },
};

/** LEASEHOLD_URL as it stands now; undefined when it is not set or empty. */
export function urlOfEnvironment(): string | undefined {
  const url = process.env.LEASEHOLD_URL;
  return url === '' ? undefined : url;
}

/** What this process calls itself when nobody chose a name: host and process number. */
export function nameOfProcess(): string {
  return `${hostname()}:${process.pid}`;
}

/** Resolves after `delayMs`, or as soon as one of `signals` fires. */
export function pause(
  runtime: ClientRuntime,
  delayMs: number,
  signals: readonly AbortSignal[] = [],
  isBackground = false,
): Promise<void> {
  return new Promise((resolve) => {
    const timer = runtime.timers.after(delayMs, () => end(), isBackground);
    const forget = onAbort(signals, () => end());
    const end = (): void => {
      timer.cancel();
      forget();
      resolve();
    };
  });
}

/**
 * The process does not end by itself before `work` has. Everything a session does is in the background, so that a finished
 * program can end; whatever somebody awaits runs in here.
 */
export async function whileAlive<T>(runtime: ClientRuntime, work: () => Promise<T>): Promise<T> {
  const timer = runtime.timers.after(AS_LONG_AS_IT_TAKES_MS, () => undefined);
  try {
    return await work();
  } finally {
    timer.cancel();
  }
}

interface Listening {
  readonly actions: Set<() => void>;
  readonly tell: () => void;
}

/** Signals that somebody listens to. Each has one listener, however many wait under it: Node.js 20 calls eleven a leak. */
const listening = new WeakMap<AbortSignal, Listening>();

function listen(signal: AbortSignal, action: () => void): void {
  const known = listening.get(signal);
  if (known !== undefined) {
    known.actions.add(action);
    return;
  }
  const actions = new Set([action]);
  const tell = (): void => {
    for (const told of [...actions]) told();
  };
  listening.set(signal, { actions, tell });
  signal.addEventListener('abort', tell);
}

function unlisten(signal: AbortSignal, action: () => void): void {
  const known = listening.get(signal);
  if (known === undefined || !known.actions.delete(action) || known.actions.size > 0) return;
  listening.delete(signal);
  signal.removeEventListener('abort', known.tell);
}

/** Calls `action` once when the first of `signals` fires; later if one has fired already. Returns how to forget it. */
export function onAbort(signals: readonly AbortSignal[], action: () => void): () => void {
  let isForgotten = false;
  const forget = (): void => {
    isForgotten = true;
    for (const signal of signals) unlisten(signal, fire);
  };
  const fire = (): void => {
    if (isForgotten) return;
    forget();
    action();
  };
  for (const signal of signals) listen(signal, fire);
  if (signals.some(({ aborted }) => aborted)) queueMicrotask(fire);
  return forget;
}
