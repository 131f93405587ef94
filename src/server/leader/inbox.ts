/**
 * What waits for the leader's next entry, in order of arrival: one queue, so that a cancel can never overtake its acquire.
 * Releases and the like always get in; acquires and reads are refused when the queue is full (rule S9).
 * Parallel arrays instead of an object per request: this is the leader's hot path.
 */
import type { Command } from '../../api/entry.ts';
import { COMMANDS_PER_ENTRY_MAX, ENTRY_BYTES_MAX } from '../../api/limits.ts';
import type { GetLock, ListLocks, ReadQuery } from '../../api/wire.ts';
import { isRefusable } from '../refusable.ts';
import type { Leases } from './leases.ts';
import { NOBODY, type Outgoing } from './outbox.ts';

/** Requests that may wait for a place in the log: about ten full entries. */
const WAITING_MAX = 20_000;
/** A list costs a pass over all names in use, up to 0.4 s of a million; from half a second on a loop counts as stalled (rule S6). */
const LISTS_PER_ENTRY_MAX = 1;
/** Lists that may wait: about what a sidecar would still wait for. */
const LISTS_WAITING_MAX = 100;
/** From so many on, what nobody waits for any more is looked for and dropped: an outage can last for hours. */
const SWEEP_FROM = 2 * WAITING_MAX;
/** Fixed part of an encoded command, generously. */
const COMMAND_BYTES = 128;

interface Read<Query = ReadQuery> {
  readonly query: Query;
  readonly to: Outgoing;
  readonly id: number;
}

export interface Batch {
  readonly commands: Command[];
  /** Who asked, and under which id; aligned with `commands`. */
  readonly from: Outgoing[];
  readonly ids: number[];
  readonly reads: Read[];
}

/**
 * Puts a command of the leader's own before all others, but behind quarantines: those only stop a timer that throws while
 * they stand at the front of their entry (rule C13).
 */
export function prepend(batch: Batch, command: Command): void {
  const { commands } = batch;
  let place = 0;
  if (command.type !== 'quarantine') while (commands[place]?.type === 'quarantine') place++;
  commands.splice(place, 0, command);
  batch.from.splice(place, 0, NOBODY);
  batch.ids.splice(place, 0, 0);
}

/**
 * What comes of a condemned session is put to the core as of none (rule C13): refused SESSION_EXPIRED, after a commit like any other
 * answer. An attach among it would otherwise be the sign of life that the session is not to have any more. True: there was some.
 */
export function strike({ commands }: Batch, leases: Pick<Leases, 'hasCondemned' | 'isCondemned'>): boolean {
  if (!leases.hasCondemned) return false;
  let hasStruck = false;
  for (const [place, command] of commands.entries()) {
    if (!('session' in command) || !leases.isCondemned(command.session)) continue;
    commands[place] = { ...command, session: 0 };
    hasStruck = true;
  }
  return hasStruck;
}

/** Who asked, and under which id. */
export interface Asked {
  readonly from: Outgoing;
  readonly id: number;
}

type Queued = Command | GetLock;
type IsUnwanted = (body: Command | ReadQuery) => boolean;

/** Takes the commands that are unwanted out of a batch. */
export function takeOut({ commands, from, ids }: Batch, isUnwanted: IsUnwanted): readonly Asked[] {
  const out: Asked[] = [];
  for (let i = commands.length - 1; i >= 0; i--) {
    if (!isUnwanted(commands[i] as Command)) continue;
    out.push({ from: from[i] as Outgoing, id: ids[i] as number });
    for (const list of [commands, from, ids]) list.splice(i, 1);
  }
  return out;
}

export class Inbox {
  #bodies: Queued[] = [];
  #from: Outgoing[] = [];
  #ids: number[] = [];
  #taken = 0;
  #sweepAt = SWEEP_FROM;
  /** Beside the queue, which does not wait for them: a list may show what its client has asked for meanwhile, or not yet. */
  #lists: Read<ListLocks>[] = [];

  get size(): number {
    return this.#bodies.length - this.#taken + this.#lists.length;
  }

  /** False: the queue is full and this request may be refused. */
  push(body: Command | ReadQuery, from: Outgoing, id: number): boolean {
    if (this.size >= WAITING_MAX && isRefusable(body)) return false;
    if (body.type === 'listLocks') return this.#pushList({ query: body, to: from, id });
    if (this.#bodies.length >= this.#sweepAt) this.#sweep();
    this.#bodies.push(body);
    this.#from.push(from);
    this.#ids.push(id);
    return true;
  }

  /** Takes what fits into one entry, without what nobody waits for any more. */
  take(): Batch {
    const batch: Batch = { commands: [], from: [], ids: [], reads: this.#takeLists() };
    let bytes = 0;
    while (
      this.#taken < this.#bodies.length &&
      batch.commands.length + batch.reads.length < COMMANDS_PER_ENTRY_MAX
    ) {
      const body = this.#bodies[this.#taken] as Queued;
      const from = this.#from[this.#taken] as Outgoing;
      const id = this.#ids[this.#taken] as number;
      if (body.type === 'getLock') {
        if (!from.isClosed) batch.reads.push({ query: body, to: from, id });
      } else if (!isMoot(body, from)) {
        bytes += bytesOf(body);
        if (bytes > ENTRY_BYTES_MAX && batch.commands.length > 0) break;
        batch.commands.push(body);
        batch.from.push(from);
        batch.ids.push(id);
      }
      this.#taken++;
    }
    // Forget what was taken once it is the larger part: cheap on average, and nothing grows under constant load.
    if (2 * this.#taken >= this.#bodies.length) this.#forget(this.#taken);
    return batch;
  }

  /** Takes out what is unwanted, wherever it waits. */
  takeOut(isUnwanted: IsUnwanted): readonly Asked[] {
    const out: Asked[] = [];
    this.#keep((body, from, id) => {
      const isOut = isUnwanted(body);
      if (isOut) out.push({ from, id });
      return !isOut;
    });
    return out;
  }

  #pushList(list: Read<ListLocks>): boolean {
    if (this.#lists.length >= LISTS_WAITING_MAX) this.#lists = this.#lists.filter(({ to }) => !to.isClosed);
    if (this.#lists.length >= LISTS_WAITING_MAX) return false;
    this.#lists.push(list);
    return true;
  }

  #takeLists(): Read[] {
    const wanted = this.#lists.filter(({ to }) => !to.isClosed);
    this.#lists = wanted.slice(LISTS_PER_ENTRY_MAX);
    return wanted.slice(0, LISTS_PER_ENTRY_MAX);
  }

  #sweep(): void {
    this.#keep((body, from) => !isMoot(body, from));
    this.#sweepAt = Math.max(SWEEP_FROM, 2 * this.#bodies.length);
  }

  #keep(isKept: (body: Queued, from: Outgoing, id: number) => boolean): void {
    const left = Array.from(this.#bodies.keys()).filter(
      (i) =>
        i >= this.#taken &&
        isKept(this.#bodies[i] as Queued, this.#from[i] as Outgoing, this.#ids[i] as number),
    );
    this.#bodies = left.map((i) => this.#bodies[i] as Queued);
    this.#from = left.map((i) => this.#from[i] as Outgoing);
    this.#ids = left.map((i) => this.#ids[i] as number);
    this.#taken = 0;
  }

  #forget(count: number): void {
    this.#bodies = this.#bodies.slice(count);
    this.#from = this.#from.slice(count);
    this.#ids = this.#ids.slice(count);
    this.#taken = 0;
  }
}

/**
 * Its stream is closed, so nobody will hear the answer: its client attaches again and then repeats what it still wants. What
 * gives something back is done all the same, if it can: otherwise streams that come and go could fill the queue with it (rule S9).
 */
function isMoot(body: Queued, { isClosed }: Outgoing): boolean {
  return isClosed && (isRefusable(body) || body.type === 'attach' || isRefusedAnyway(body));
}

/** Of a session that is not its sender's, or under no attach number (rule C7). */
function isRefusedAnyway(body: Queued): boolean {
  if (!('session' in body) || body.type === 'reportStale') return false;
  return body.session === 0 || ('attach' in body && body.attach === 0);
}

/** An upper estimate that costs nothing: three bytes for each unit of its long texts. */
function bytesOf(command: Command): number {
  switch (command.type) {
    case 'acquire':
      return (
        COMMAND_BYTES +
        3 * (command.name.length + command.owner.length + command.purpose.length) +
        acks(command.acks)
      );
    case 'release':
      return COMMAND_BYTES + 3 * command.name.length + acks(command.acks);
    case 'cancel':
      return COMMAND_BYTES + acks(command.acks);
    case 'expireSessions':
      return COMMAND_BYTES + 8 * command.sessions.length;
    default:
      return 16 * COMMAND_BYTES;
  }
}

function acks(keys: readonly string[]): number {
  return keys.length * 65;
}
