/**
 * The sessions of one client: one for each namespace (alias) and `maxHoldMs` it uses. Not one a lock: each costs a connection
 * and a call every TTL/5, and what ends one of them (a frozen process, a sidecar that is gone) ends all. Not one for
 * everything: namespaces may be lost apart from each other, and a session tells the earliest deadline of them all.
 */
import { ClientClosedError } from './errors.ts';
import type { Surroundings } from './grant-calls.ts';
import type { Timer } from './runtime.ts';
import { Session, type SessionOptions } from './session.ts';

/** An unused session is kept for the next lock that long. */
const IDLE_MS = 10_000;

interface Entry {
  readonly opening: Promise<Session>;
  opened: Session | null;
  idle: Timer | null;
}

export class SessionPool {
  readonly #around: Surroundings;
  readonly #options: Omit<SessionOptions, 'maxHoldMs'>;
  readonly #entries = new Map<string, Entry>();
  #isClosed = false;

  constructor(around: Surroundings, options: Omit<SessionOptions, 'maxHoldMs'>) {
    this.#around = around;
    this.#options = options;
  }

  /** A session that is alive, in use until `unuse`. @throws LeaseholdError, NoAnswerError */
  async use(alias: string, maxHoldMs: number | undefined): Promise<Session> {
    // Also where the session that was to be used has just been closed with all the others: nobody would close another one.
    if (this.#isClosed) throw new ClientClosedError();
    const key = `${alias}/${maxHoldMs ?? ''}`;
    const entry = this.#entries.get(key) ?? this.#open(key, maxHoldMs);
    const session = await entry.opening;
    if (session.over.aborted) return await this.use(alias, maxHoldMs);
    entry.idle?.cancel();
    entry.idle = null;
    session.use();
    return session;
  }

  /** Gives up everything that is held; those who work under it are told at once. */
  async closeAll(): Promise<void> {
    this.#isClosed = true;
    const closing = [...this.#entries.values()].map(async ({ opening, opened }) => {
      if (opened !== null) await opened.close();
      else await opening.then((session) => session.close()).catch(() => undefined);
    });
    await Promise.all(closing);
  }

  #open(key: string, maxHoldMs: number | undefined): Entry {
    const options = maxHoldMs === undefined ? this.#options : { ...this.#options, maxHoldMs };
    const opening = Session.open(this.#around, options, {
      idle: (session) => this.#idle(entry, session),
      over: () => this.#remove(key, entry),
    });
    const entry: Entry = { opening, opened: null, idle: null };
    this.#entries.set(key, entry);
    opening.then(
      (session) => {
        entry.opened = session;
      },
      () => this.#remove(key, entry),
    );
    return entry;
  }

  #idle(entry: Entry, session: Session): void {
    entry.idle?.cancel();
    const close = (): void => {
      if (!session.isUsed) void session.close();
    };
    entry.idle = this.#around.runtime.timers.after(IDLE_MS, close, true);
  }

  #remove(key: string, entry: Entry): void {
    entry.idle?.cancel();
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }
}
