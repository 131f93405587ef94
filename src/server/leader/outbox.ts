/**
 * What the leader has to say after a commit, collected by client and sent as one frame per front end.
 */
import type { CommandResult, Identity, LockEvent, SessionId } from '../../api/entry.ts';
import type {
  Answer,
  AnswerBody,
  KeepaliveAnswer,
  LeaderFrame,
  LeaderGroup,
  Mark,
  Position,
  ReadResult,
  SessionNotice,
} from '../../api/wire.ts';

/** One front end's stream as the leader sees it. */
export interface FrontEndLink {
  send(frame: LeaderFrame): void;
  /** An entry is committed, and what it had to say to this front end is sent. Links to other replicas tell of it: standbys follow. */
  committed?(): void;
}

/** One client stream of one front end, with what is to be sent to it. */
export class Outgoing {
  readonly link: FrontEndLink;
  readonly client: number;
  /** What its client has proved to the front end; null: not told, so it acts for nobody. */
  identity: Identity | null = null;
  answers: Answer[] = [];
  notices: SessionNotice[] = [];
  keepalives: KeepaliveAnswer[] = [];
  isListed = false;
  /** When it was given a mark last. */
  markedAtMs = Number.NEGATIVE_INFINITY;
  /** Nobody hears what is sent to it any more. */
  isClosed = false;

  constructor(link: FrontEndLink, client: number) {
    this.link = link;
    this.client = client;
  }
}

/** How often a client is given a mark, if there is something to tell it anyway (rule S10). */
const MARK_EVERY_MS = 1_000;

/** Gives clients marks of the commit that is being published. */
export interface MarkGiver {
  readonly nowMs: number;
  make(): Mark;
}

/** Takes the answers to the leader's own commands: nobody waits for them. */
export const NOBODY = new Outgoing({ send: () => undefined }, 0);

export class Outbox {
  #dirty: Outgoing[] = [];

  answer(to: Outgoing, id: number, body: CommandResult | ReadResult | AnswerBody): void {
    this.#list(to).answers.push({ id, body });
  }

  notify(to: Outgoing, session: SessionId, attach: number, event: LockEvent): void {
    this.#list(to).notices.push({ session, attach, event });
  }

  keepalive(to: Outgoing, answer: KeepaliveAnswer): void {
    this.#list(to).keepalives.push(answer);
  }

  /** Sends everything, as true at `position`; `marks`: that is the commit which is being published. */
  flush(position: Position, marks?: MarkGiver): void {
    if (this.#dirty.length === 0) return;
    const byLink = new Map<FrontEndLink, LeaderGroup[]>();
    let mark: Mark | undefined;
    for (const to of this.#dirty) {
      const isMarked = marks !== undefined && marks.nowMs - to.markedAtMs >= MARK_EVERY_MS;
      if (isMarked) {
        mark ??= marks.make();
        to.markedAtMs = marks.nowMs;
      }
      const group: LeaderGroup = {
        client: to.client,
        answers: to.answers,
        notices: to.notices,
        keepalives: to.keepalives,
        ...(isMarked && mark !== undefined ? { mark } : {}),
      };
      const groups = byLink.get(to.link);
      if (groups === undefined) byLink.set(to.link, [group]);
      else groups.push(group);
      to.answers = [];
      to.notices = [];
      to.keepalives = [];
      to.isListed = false;
    }
    this.#dirty = [];
    for (const [link, groups] of byLink) link.send({ position, groups });
  }

  #list(to: Outgoing): Outgoing {
    if (!to.isListed) {
      to.isListed = true;
      this.#dirty.push(to);
    }
    return to;
  }
}
