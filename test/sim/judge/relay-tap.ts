/**
 * Listens on the streams between the replicas of a group, where their leader hears and speaks: what was acknowledged, and whether it was
 * certain by then (rule S1).
 */
import type { LeaderFrame, RelayFrame } from '../../../src/api/wire.ts';
import type { Life } from '../world/process.ts';
import type { RelayWatch } from '../world/relay-link.ts';
import type { World } from '../world/world.ts';
import type { Findings } from './findings.ts';
import type { GroupJudge } from './group-judge.ts';

/** The last entry that the leader had built when this arrived, by client and number. */
interface Heard {
  readonly requests: Map<string, number>;
  readonly keepalives: Map<string, number>;
}

export class RelayTap implements RelayWatch {
  readonly #judge: GroupJudge;
  readonly #findings: Findings;
  readonly #streams = new WeakMap<object, Heard>();

  readonly #world: World;
  /** Accepted by a leader, and its front end has not said that its sessions are attached; when it came. */
  readonly #reattaching = new Map<object, { readonly step: number; readonly leader: Life }>();

  constructor(
    world: World,
    { judge, findings }: { readonly judge: GroupJudge; readonly findings: Findings },
  ) {
    this.#world = world;
    this.#judge = judge;
    this.#findings = findings;
  }

  accepted(stream: object, leader: Life): void {
    this.#reattaching.set(stream, { step: this.#world.steps, leader });
  }

  left(stream: object): void {
    this.#reattaching.delete(stream);
  }

  /** Whether one had come to this leader before this step, and was not ready by then nor is it now. */
  isReattaching(by: Life, beforeStep: number): boolean {
    for (const { step, leader } of this.#reattaching.values())
      if (leader === by && step < beforeStep) return true;
    return false;
  }

  reached({ groups }: RelayFrame): void {
    for (const { keepalive } of groups)
      for (const { session, attach } of keepalive?.sessions ?? []) this.#judge.knocked(session, attach);
  }

  received(stream: object, { groups, allAttached }: RelayFrame, leader: Life): void {
    if (allAttached === true) this.#reattaching.delete(stream);
    const heard = this.#heard(stream);
    const behind = this.#judge.builtBy(leader);
    for (const { client, requests, keepalive } of groups) {
      for (const { id } of requests) heard.requests.set(`${client} ${id}`, behind);
      if (keepalive === undefined) continue;
      heard.keepalives.set(`${client} ${keepalive.number}`, behind);
      for (const { session, attach } of keepalive.sessions) this.#judge.heard(session, attach);
    }
  }

  sent(stream: object, { position, groups }: LeaderFrame): void {
    const heard = this.#heard(stream);
    for (const { client, answers, keepalives } of groups) {
      for (const { id, body } of answers) {
        const behind = take(heard.requests, `${client} ${id}`);
        if (body.type !== 'rejected')
          this.#check(`request ${id} of client ${client}`, behind, position.index);
      }
      for (const { number } of keepalives) {
        const behind = take(heard.keepalives, `${client} ${number}`);
        this.#check(`keepalive ${number} of client ${client}`, behind, position.index);
      }
    }
  }

  #check(what: string, behind: number | undefined, index: number): void {
    if (behind === undefined) {
      this.#findings.add('rule S2', `${what} was answered over a stream on which it had not arrived`);
    } else if (index <= behind) {
      const message = `${what} reached the leader after entry ${behind} was sent to the log and was answered with entry ${index}`;
      this.#findings.add('rule S1', message);
    }
  }

  #heard(stream: object): Heard {
    let heard = this.#streams.get(stream);
    if (heard === undefined) {
      heard = { requests: new Map(), keepalives: new Map() };
      this.#streams.set(stream, heard);
    }
    return heard;
  }
}

function take(from: Map<string, number>, key: string): number | undefined {
  const value = from.get(key);
  from.delete(key);
  return value;
}
