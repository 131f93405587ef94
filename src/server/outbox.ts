/**
 * What the leader has to say after a commit, collected by client and sent as one frame per front end.
 */
import type { CommandResult, Identity, LockEvent, SessionId } from '../api/entry.ts';
import type {
  Answer,
  AnswerBody,
  KeepaliveAnswer,
  LeaderFrame,
  LeaderGroup,
  Position,
  ReadResult,
  SessionNotice,
} from '../api/wire.ts';

/** One front end's stream as the leader sees it. */
export interface FrontEndLink {
  send(frame: LeaderFrame): void;
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
  /** Nobody hears what is sent to it any more. */
  isClosed = false;

  constructor(link: FrontEndLink, client: number) {
    this.link = link;
    this.client = client;
  }
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

  /** Sends everything, as true at `position`. */
  flush(position: Position): void {
    if (this.#dirty.length === 0) return;
    const byLink = new Map<FrontEndLink, LeaderGroup[]>();
    for (const to of this.#dirty) {
      const group = {
        client: to.client,
        answers: to.answers,
        notices: to.notices,
        keepalives: to.keepalives,
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
