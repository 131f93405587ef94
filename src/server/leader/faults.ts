/**
 * What the leader does about a command or a consequence that makes the state machine throw (rule C13): leave the command out
 * and end its session, or put the name out of service; and remember the command, so that a repeat costs nothing.
 */
import type { Command, SessionId } from '../../api/entry.ts';
import type { ReadQuery } from '../../api/wire.ts';
import { type CoreFault, canonicalJson, type FaultStep, sha256 } from '../../core/index.ts';
import type { Logger } from '../../platform/runtime.ts';
import { type Asked, type Batch, prepend } from './inbox.ts';
import { NOBODY, type Outgoing } from './outbox.ts';

/** Told to whoever sends again what threw. */
export const MADE_IT_FAIL = {
  type: 'rejected',
  code: 'INVALID',
  message: 'this request has made the state machine fail before',
} as const;

const REMEMBERED_MAX = 1_000;
/** The same name failing again after its quarantine: something else is wrong, and going on would be guessing. */
const FAULTS_PER_NAME_MAX = 3;
/** Commands of the leader's own are made again at the next turn, so leaving one out settles nothing. */
const OWN_FAULTS_MAX = 3;

/** Who sent what was left out, and what they are told. */
export interface Culprit extends Asked {
  readonly message: string;
  /** For its client it is over from now on; null: it sent nothing for a session. */
  readonly session: SessionId | null;
}

export class Faults {
  readonly #logger: Logger;
  readonly #known = new Set<string>();
  readonly #byName = new Map<string, number>();
  #retry: Batch | null = null;
  #ownFaults = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  isKnown(body: Command | ReadQuery): boolean {
    return this.#known.size > 0 && this.#known.has(fingerprint(body));
  }

  /** The batch to try again, without its culprit; null when nothing is left of it. */
  takeRetry(): Batch | null {
    const retry = this.#retry;
    this.#retry = null;
    return retry === null || retry.commands.length + retry.reads.length > 0 ? retry : null;
  }

  /** Decides what the next entry must look like. Throws when there is no way to go on. */
  blame(step: FaultStep, batch: Batch, fault: CoreFault): Culprit | null {
    switch (step.kind) {
      case 'command':
        return this.#blameCommand(step.position, batch, fault);
      case 'consequence': {
        const unquarantine = unquarantineOf(step.name, batch);
        if (unquarantine >= 0) return this.#blameCommand(unquarantine, batch, fault);
        this.#blameName(step.name, batch, fault);
        return null;
      }
      case 'entry':
        throw fault;
    }
  }

  /** The name was put back into service: what was wrong with it before counts no longer. */
  forgive(name: string): void {
    this.#byName.delete(name);
  }

  #blameCommand(position: number, batch: Batch, fault: CoreFault): Culprit {
    const command = batch.commands[position] as Command;
    const from = batch.from[position] as Outgoing;
    const consequence = 'session' in command ? 'its session ends' : 'nothing was changed';
    const message = `this request made the state machine fail; ${consequence}`;
    const session = 'session' in command && command.session > 0 ? command.session : null;
    const culprit = { from, id: batch.ids[position] as number, message, session };
    if (culprit.from === NOBODY && ++this.#ownFaults > OWN_FAULTS_MAX) throw fault;
    this.#logger.error(
      { command: command.type, error: fault.message },
      'command refused: it made the state machine throw',
    );
    // An administrator may ask for the same again once the cause is mended.
    if (command.type !== 'unquarantine') this.#remember(command);
    for (const list of [batch.commands, batch.from, batch.ids]) list.splice(position, 1);
    this.#retry = batch;
    return culprit;
  }

  #blameName(name: string, batch: Batch, fault: CoreFault): void {
    const faults = (this.#byName.get(name) ?? 0) + 1;
    if (faults > FAULTS_PER_NAME_MAX) throw fault;
    if (this.#byName.size >= REMEMBERED_MAX) this.#byName.clear();
    this.#byName.set(name, faults);
    this.#logger.error(
      { lock: name, error: fault.message },
      'lock quarantined: a step of its own made the state machine throw',
    );
    prepend(batch, { type: 'quarantine', name, reason: fault.message.slice(0, 200) });
    this.#retry = batch;
  }

  #remember(command: Command): void {
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.add(fingerprint(command));
  }
}

/** The name was out of service and still fails: then it is not to be put back. -1: nobody asks for that. */
function unquarantineOf(name: string, { commands }: Batch): number {
  return commands.findIndex((command) => command.type === 'unquarantine' && command.name === name);
}

function fingerprint(body: Command | ReadQuery): string {
  return sha256(canonicalJson(body));
}
