/**
 * Makes the next entry of a random run. It looks at the state to find targets that mean something: keys in use, tokens held
 * now or a while ago, due times; the entry itself is then plain data, which can be applied again without the generator.
 */
import type { Acquire, Command, Token } from '../../src/api/entry.ts';
import { holdsOf } from '../../src/core/crowd.ts';
import { keysOf } from '../../src/core/holds.ts';
import type { Hold, Session, State } from '../../src/core/state.ts';
import { permitsOf } from '../../src/history/naive/state.ts';
import { acquireCommand, openCommand } from '../support/core.ts';
import type { Random } from '../support/random.ts';
import { ACCOUNTS, makeConfig, makeWorld, STEPS, type Step, type World } from './world.ts';

/** One entry of a run. */
export interface PlannedEntry {
  readonly afterMs: number;
  readonly commands: readonly Command[];
}

const REMEMBERED_TOKENS = 20;
const KEYS_OF_A_CLIENT = 12;
const LONG = 'n'.repeat(600);

export interface GeneratorOptions {
  /** Thousands of locks, so that entries use up their budget. */
  readonly isLarge: boolean;
  /** As clients should: a key is never used again once its outcome may be forgotten. The history checker relies on it. */
  readonly oneRequestPerKey: boolean;
}

export class Generator {
  readonly world: World;
  readonly #random: Random;
  readonly #isLarge: boolean;
  readonly #oneRequestPerKey: boolean;
  /** Keys that this entry settles or cancels. */
  readonly #gone = new Set<string>();
  /** Tokens seen lately, most of them over by now. */
  readonly #tokens: Token[] = [1];
  #version = 0;
  #freshKeys = 0;

  constructor(random: Random, { isLarge, oneRequestPerKey }: GeneratorOptions) {
    this.#random = random;
    this.#isLarge = isLarge;
    this.#oneRequestPerKey = oneRequestPerKey;
    this.world = makeWorld(random, isLarge);
  }

  /** The entry that starts a log. */
  first(): PlannedEntry {
    const random = this.#random;
    const tokenFloor = random.chance(0.2) ? random.int(1_000) : 0;
    const unixSeconds = random.pick([0, 0, 100, 1_800_000_000, 4_102_444_801]);
    const takeOver: Command = { type: 'takeOver', epoch: 1, unixSeconds, tokenFloor, reason: 'first' };
    const raise: Command[] = this.world.startsRaised ? [{ type: 'raiseBehaviour', level: 2 }] : [];
    return { afterMs: 0, commands: [takeOver, ...raise, this.#configure()] };
  }

  next(state: State): PlannedEntry {
    const random = this.#random;
    this.#rememberTokens(state);
    this.#gone.clear();
    const size = random.chance(0.15) ? 0 : random.between(1, this.world.batchMax);
    const commands: Command[] = [];
    if (random.chance(0.005)) commands.push(this.#takeOver(state));
    else if (random.chance(0.01)) commands.push(this.#quarantine());
    // Without a configuration little can happen, so that never lasts.
    if (state.config === null && random.chance(0.3)) commands.push(this.#configure());
    for (let i = 0; i < size; i++) commands.push(this.#command(state));
    if (random.chance(0.005)) commands.push({ type: 'resign', epoch: state.epoch });
    return { afterMs: this.#afterMs(state), commands };
  }

  #afterMs(state: State): number {
    const random = this.#random;
    if (!random.chance(this.world.timeMoves)) return 0;
    const due = state.timers.first()?.due ?? state.at;
    switch (random.int(8)) {
      case 0:
      case 1:
        return Math.max(0, due - state.at);
      case 2:
        return Math.max(0, due - state.at - 1);
      case 3:
        return random.int(30_000);
      case 4:
        return random.chance(0.1) ? 86_400_000 : 15_000;
      default:
        return random.int(1_500);
    }
  }

  #command(state: State): Command {
    const random = this.#random;
    const wanted = state.sessions.size < this.world.sessionsWanted && random.chance(0.3);
    const step = wanted ? 'open' : (STEPS[random.weighted(this.world.weights)] ?? 'acquire');
    return this.#make(step, state);
  }

  #make(step: Step, state: State): Command {
    switch (step) {
      case 'acquire':
      case 'repeat':
      case 'reuseKey':
      case 'malformed':
        return this.#acquire(step, state);
      case 'release':
      case 'releaseWrong':
        return this.#release(step, state);
      case 'cancel':
      case 'ack':
        return this.#cancel(step, state);
      case 'open':
      case 'attach':
      case 'close':
      case 'expire':
        return this.#sessionCommand(step, state);
      default:
        return this.#adminCommand(step, state);
    }
  }

  #acquire(step: 'acquire' | 'repeat' | 'reuseKey' | 'malformed', state: State): Command {
    const random = this.#random;
    const session = this.#session(state);
    // Before the key, since acks count first: a key named there would start a new request.
    const acks = this.#acks(session, 0.5);
    const known = step === 'acquire' ? undefined : this.#repeatableKey(session);
    const name = random.pick(this.world.names);
    const isSemaphore = permitsOf(state.config, name) !== null && !random.chance(0.1);
    const mode = isSemaphore ? 'semaphore' : random.pick(this.world.modes);
    const command = acquireCommand({
      session: session?.id ?? random.int(50),
      attach: this.#attach(session),
      key: this.#key(session, random),
      name,
      mode,
      permits: isSemaphore ? random.pick(this.world.permits) : 1,
      reentrant: random.chance(this.world.reentrant),
      owner: random.pick(this.world.owners),
      purpose: random.chance(0.1) ? 'why' : '',
      waitMs: random.pick(this.world.waitMs),
      acks,
    });
    if (step === 'malformed') return { ...command, ...this.#fault() };
    if (known === undefined) return command;
    const same = session?.keys.get(known)?.request;
    if (step === 'reuseKey' || same === undefined) return { ...command, key: known };
    return { ...same, attach: command.attach, waitMs: command.waitMs, acks };
  }

  #key(session: Session | undefined, random: Random): string {
    if (this.#isLarge || this.#oneRequestPerKey || random.chance(0.3)) return `fresh-${++this.#freshKeys}`;
    const key = `k${random.int(KEYS_OF_A_CLIENT)}`;
    return session?.keys.has(key) === true ? `fresh-${++this.#freshKeys}` : key;
  }

  #fault(): Partial<Acquire> {
    const faults: Partial<Acquire>[] = [
      { name: '' },
      { name: LONG },
      { key: '' },
      { key: LONG },
      { mode: 'exclusive', permits: 2 },
      { mode: 'shared', permits: 2 },
      { mode: 'semaphore', permits: 0 },
      { mode: 'semaphore', permits: 10_001 },
      { mode: 'semaphore', permits: 10_000 },
      { owner: LONG },
      { purpose: LONG.repeat(2) },
      { waitMs: 86_400_001 },
    ];
    return this.#random.pick(faults);
  }

  #release(step: 'release' | 'releaseWrong', state: State): Command {
    const random = this.#random;
    const hold = this.#anyHold(state);
    const isRight = step === 'release' && hold !== undefined;
    const session = isRight || random.chance(0.3) ? hold?.record.session : this.#session(state);
    const isNameRight = hold !== undefined && (isRight || random.chance(0.5));
    return {
      type: 'release',
      session: session?.id ?? random.int(50),
      attach: this.#attach(session),
      name: isNameRight ? hold.lock.name : random.pick(this.world.names),
      token: isRight || (hold !== undefined && random.chance(0.3)) ? hold.token : this.#token(state),
      key: hold === undefined || random.chance(0.1) ? '' : this.#keyOf(hold),
      acks: this.#acks(session, 0.5),
    };
  }

  #anyHold(state: State): Hold | undefined {
    const lock = this.#anyOf(state.locks.values(), state.locks.size);
    const holds = lock === undefined ? [] : [...holdsOf(lock)];
    return holds.length === 0 ? undefined : this.#random.pick(holds);
  }

  /** Mostly one of its keys, sometimes one that was. */
  #keyOf(hold: Hold): string {
    const { request } = this.#random.pick([...keysOf(hold), hold.record]);
    return request.key;
  }

  #cancel(step: 'cancel' | 'ack', state: State): Command {
    const session = this.#session(state);
    const key = step === 'ack' ? 'nothing' : (this.#knownKey(session) ?? 'unknown');
    const acks = this.#acks(session, step === 'ack' ? 1 : 0.2);
    const id = session?.id ?? this.#random.int(50);
    this.#gone.add(`${id} ${key}`);
    return { type: 'cancel', session: id, attach: this.#attach(session), key, acks };
  }

  #sessionCommand(step: 'open' | 'attach' | 'close' | 'expire', state: State): Command {
    const random = this.#random;
    const session = this.#session(state);
    const id = session?.id ?? random.int(50);
    switch (step) {
      case 'open':
        return openCommand({
          identity: { account: random.pick(ACCOUNTS), podUid: '' },
          ttlMs: random.chance(0.03) ? 4_999 : random.pick([5_000, 15_000, 60_000]),
          maxHoldMs: random.chance(0.02) ? 999 : random.pick(this.world.maxHoldMs),
        });
      case 'attach': {
        const secret = random.chance(0.05) ? 'b6' : 'a5';
        const attach = (session?.attach ?? 1) + random.pick([-1, 0, 1, 1, 1, 2]);
        return { type: 'attach', session: id, attach: Math.max(0, attach), secretHash: secret.repeat(32) };
      }
      case 'close':
        return {
          type: 'closeSession',
          session: id,
          attach: this.#attach(session),
          clean: random.chance(0.6),
        };
      case 'expire': {
        const count = random.pick([1, 1, 2, this.#isLarge ? 20 : 4]);
        const sessions = Array.from({ length: count }, () => this.#session(state)?.id ?? random.int(50));
        return { type: 'expireSessions', sessions, cause: random.chance(0.8) ? 'expired' : 'threw' };
      }
    }
  }

  #adminCommand(
    step: Exclude<Step, 'acquire' | 'release' | 'cancel' | 'open' | 'attach' | 'close' | 'expire'>,
    state: State,
  ): Command {
    const random = this.#random;
    const name = random.pick(this.world.names);
    switch (step) {
      case 'configure':
        return this.#configure();
      case 'unconfigure':
        return { type: 'configure', version: ++this.#version, config: null };
      case 'break': {
        const lock = state.locks.get(name);
        const holds = lock === undefined || random.chance(0.2) ? [] : [...holdsOf(lock)];
        const token = holds.length === 0 ? undefined : random.pick(holds).token;
        const now = random.chance(0.3);
        return { type: 'break', name, token: token ?? this.#token(state), now, reason: 'why', by: 'me' };
      }
      case 'quarantine':
        return this.#quarantine();
      case 'reportStale': {
        const session = random.chance(0.2) ? 0 : (this.#session(state)?.id ?? 9);
        return { type: 'reportStale', session, name, token: this.#token(state), resource: 'table' };
      }
      case 'raiseBehaviour':
        return { type: 'raiseBehaviour', level: random.int(4) };
      default:
        return { type: 'unquarantine', name: this.#quarantinedName(state) ?? name, by: 'me' };
    }
  }

  #configure(): Command {
    const random = this.#random;
    const isOld = this.#version > 0 && random.chance(0.1);
    const version = isOld ? random.int(this.#version + 1) : ++this.#version;
    return { type: 'configure', version, config: makeConfig(random, this.#isLarge, this.world) };
  }

  #takeOver(state: State): Command {
    const epoch = state.epoch + this.#random.between(1, 2);
    const unixSeconds = this.#random.pick([0, 1, 1_000, 1_800_000_000]);
    return { type: 'takeOver', epoch, unixSeconds, tokenFloor: 0, reason: 'again' };
  }

  #quarantine(): Command {
    return { type: 'quarantine', name: this.#random.pick(this.world.names), reason: 'why' };
  }

  #quarantinedName(state: State): string | undefined {
    for (const lock of state.locks.values()) if (lock.quarantined) return lock.name;
    return undefined;
  }

  #session(state: State): Session | undefined {
    return this.#anyOf(state.sessions.values(), state.sessions.size);
  }

  #attach(session: Session | undefined): number {
    const attach = session?.attach ?? 1;
    return this.#random.chance(0.03) ? attach + this.#random.pick([-1, 1]) : attach;
  }

  #knownKey(session: Session | undefined): string | undefined {
    return session === undefined ? undefined : this.#anyOf(session.keys.keys(), session.keys.size);
  }

  /** A key whose request may be sent again, or another one under it. */
  #repeatableKey(session: Session | undefined): string | undefined {
    const key = this.#knownKey(session);
    if (!this.#oneRequestPerKey || session === undefined || key === undefined) return key;
    const isCertain = session.keys.get(key)?.settled === false && !this.#gone.has(`${session.id} ${key}`);
    return isCertain ? key : undefined;
  }

  #acks(session: Session | undefined, probability: number): string[] {
    if (session === undefined || !this.#random.chance(probability)) return [];
    const acks = this.#isLarge ? [...session.keys.keys()].slice(-200) : this.#someKeys(session);
    for (const key of acks) this.#gone.add(`${session.id} ${key}`);
    return acks;
  }

  #someKeys(session: Session): string[] {
    const count = this.#random.between(1, 4);
    return Array.from({ length: count }, () => this.#knownKey(session) ?? `k${this.#random.int(9)}`);
  }

  #token(state: State): Token {
    const random = this.#random;
    const token = random.chance(0.3) ? state.lastToken : random.pick(this.#tokens);
    return Math.max(0, token + (random.chance(0.2) ? random.between(-1, 1) : 0));
  }

  #rememberTokens(state: State): void {
    if (this.#tokens.at(-1) !== state.lastToken) this.#tokens.push(state.lastToken);
    if (this.#tokens.length > REMEMBERED_TOKENS) this.#tokens.shift();
  }

  #anyOf<T>(values: Iterable<T>, size: number): T | undefined {
    if (size === 0) return undefined;
    let left = this.#random.int(size);
    for (const value of values) if (left-- === 0) return value;
    return undefined;
  }
}
