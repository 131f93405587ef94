/**
 * One grant as its application sees it: until when it believes in it, and what it puts on record about that. The record is
 * what the checker compares with the group's history (promise 5). Several acquires may share a re-entrant grant (rule C6);
 * each is given back on its own, and with the last of them the grant.
 */
import type { SessionId } from '../../../src/api/entry.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { Asked } from '../plan-locks.ts';
import type { Machine } from '../world/machine.ts';
import type { World } from '../world/world.ts';

export interface AppGrantOptions {
  readonly judge: GroupJudge;
  readonly lineage: string;
  readonly machine: Machine;
  /** With its alias, as the API names it. */
  readonly fullName: string;
  readonly name: string;
  readonly sessionId: string;
  readonly session: SessionId;
  readonly token: number;
  readonly asked: Asked;
}

/** Two groups may give out the same token. */
export function grantId(fullName: string, token: number): string {
  return `${fullName} ${token}`;
}

/** What one acquire has of a grant. */
export class AppShare {
  readonly grant: AppGrant;
  /** Names it at its release, if the grant is re-entrant. */
  readonly request: string | undefined;
  /** A worker works under it. */
  isWorkedOn = false;
  #isGivenBack = false;

  constructor(grant: AppGrant, request: string | undefined) {
    this.grant = grant;
    this.request = request;
  }

  get isGivenBack(): boolean {
    return this.#isGivenBack;
  }

  /** Its acquire was answered twice, and it has been given back between the answers: others still have the grant (rule C6). */
  arriveTooLate(): void {
    this.isWorkedOn = true;
    this.giveBack();
  }

  giveBack(): void {
    this.#isGivenBack = true;
    if (this.grant.isGivenBack) this.grant.giveUp();
  }
}

export class AppGrant {
  readonly options: AppGrantOptions;
  readonly #world: World;
  #state: 'believed' | 'gaveUp' | 'lost' = 'believed';
  #deadlineMs: number;
  #believedFromMs: number;
  /** It learned of the loss by asking, and the stream has not told it yet: that is no second telling. */
  #isToBeTold = false;
  readonly #shares: AppShare[] = [];

  /** `deadlineMs`: on the machine's monotonic clock, as the answer said. */
  constructor(world: World, options: AppGrantOptions, deadlineMs: number) {
    this.#world = world;
    this.options = options;
    this.#deadlineMs = deadlineMs;
    this.#believedFromMs = world.nowMs;
  }

  /** What the acquire of this `request` has of it, since now or before. `key`: by which the group knows that acquire. */
  share(request: string | undefined, key: string): AppShare {
    const known = this.shareOf(request);
    if (known !== undefined) return known;
    const share = new AppShare(this, request);
    this.#shares.push(share);
    this.options.judge.client({ type: 'grantReported', ...this.#subject, key, at: this.#world.nowMs });
    return share;
  }

  shareOf(request: string | undefined): AppShare | undefined {
    return this.#shares.find((share) => share.request === request);
  }

  /** By each of the acquires that share it. */
  get isGivenBack(): boolean {
    return this.#shares.every(({ isGivenBack }) => isGivenBack);
  }

  get token(): number {
    return this.options.token;
  }

  get id(): string {
    return grantId(this.options.fullName, this.token);
  }

  /** Neither given up nor told lost, and the deadline told last has not passed. */
  get isBelieved(): boolean {
    return this.#state === 'believed' && this.options.machine.monotonicMs() < this.#deadlineMs;
  }

  get isOver(): boolean {
    return this.#state !== 'believed';
  }

  get isLost(): boolean {
    return this.#state === 'lost';
  }

  /** An answer told a new deadline. */
  told(deadlineMs: number): void {
    if (this.#state !== 'believed') return;
    this.#noteBelief();
    this.#deadlineMs = Math.max(deadlineMs, this.#deadlineMs);
  }

  /** Release, DELETE and the end of the stream give up every deadline told before. */
  giveUp(): void {
    if (this.#state !== 'believed') return;
    this.#noteBelief();
    this.#state = 'gaveUp';
    this.options.judge.client({ type: 'gaveUp', ...this.#subject, at: this.#world.nowMs });
  }

  /** It arrived when its application had given everything up already: it never believed in it. */
  arriveTooLate(): void {
    this.#deadlineMs = Number.NEGATIVE_INFINITY;
    this.giveUp();
  }

  /** Told on the stream: each time counts, since it must be told once. */
  toldLost(): void {
    const isNews = !this.#isToBeTold;
    this.#isToBeTold = false;
    if (!isNews) return;
    if (this.#state === 'believed') this.#noteBelief();
    this.#state = 'lost';
    this.options.judge.client({ type: 'lost', ...this.#subject, at: this.#world.nowMs });
  }

  /** Found out by asking. */
  foundLost(): void {
    if (this.#state !== 'believed') return;
    this.toldLost();
    this.#isToBeTold = true;
  }

  /** Its application is dead and believes nothing any more. */
  died(): void {
    if (this.#state === 'believed') this.#noteBelief();
    this.#state = 'gaveUp';
  }

  /** The machine is about to sleep: its monotonic clock will not count the time (rule A2). */
  beforeSleep(): void {
    if (this.#state !== 'believed') return;
    this.#noteBelief();
    this.#deadlineMs = Number.NEGATIVE_INFINITY;
  }

  #noteBelief(): void {
    const { machine, judge } = this.options;
    const from = this.#believedFromMs;
    const to = Math.min(this.#world.nowMs, machine.usAt(this.#deadlineMs) / 1_000);
    if (to >= from) judge.client({ type: 'heldInterval', ...this.#subject, from, to });
    this.#believedFromMs = this.#world.nowMs;
  }

  get #subject() {
    const { lineage, session, name, token } = this.options;
    return { lineage, session, name, token };
  }
}
