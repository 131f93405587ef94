/** A client of the small world: it takes the one lock there is, and gives it back; while it waits it may think better of it. */
import type { AnswerBody, ClientRequestBody, ClientStream, ServerFrame } from '../../../src/api/wire.ts';
import type { FrontEnd } from '../../../src/server/front-end/front-end.ts';
import { acquireCommand, SECRET_HASH } from '../../support/core.ts';
import type { GroupJudge } from '../judge/group-judge.ts';
import type { World } from '../world/world.ts';

export const LINEAGE = 'small';
const WAIT_MS = 60_000;
const NAME = 'job';

type Asked = 'open' | 'acquire' | 'release' | 'cancel' | 'close';

interface Around {
  readonly frontEnd: FrontEnd;
  readonly judge: GroupJudge;
  readonly world: World;
}

export class SmallClient {
  readonly name: string;
  /** What it has been told, in order. */
  readonly heard: string[] = [];
  readonly #around: Around;
  readonly #stream: ClientStream;
  #session = 0;
  #asked: Asked | null = null;
  #isQueued = false;
  #token = 0;
  #lastId = 0;
  #isDone = false;

  constructor(name: string, around: Around) {
    this.name = name;
    this.#around = around;
    this.#stream = around.frontEnd.connect(
      { account: 'dev/developer', podUid: '' },
      { onFrame: (frame) => this.#hear(frame), onClose: () => undefined },
    );
  }

  /** What it waits for; null: it may ask for something. */
  get asked(): Asked | null {
    return this.#asked;
  }

  /** What it would ask for next; null: nothing. */
  get next(): 'acquire' | 'release' | 'cancel' | null {
    if (this.#session === 0 || this.#isDone) return null;
    if (this.#asked === 'acquire' && this.#isQueued) return 'cancel';
    if (this.#asked !== null) return null;
    return this.#token === 0 ? 'acquire' : 'release';
  }

  open(ttlMs: number): void {
    this.#ask('open', { type: 'open', client: this.name, ttlMs, maxHoldMs: 0, secretHash: SECRET_HASH });
  }

  askNext(): void {
    const session = this.#session;
    const key = this.#key;
    const token = this.#token;
    switch (this.next) {
      case 'acquire':
        this.#ask('acquire', acquireCommand({ session, key, name: NAME, waitMs: WAIT_MS }));
        return;
      case 'release':
        this.#ask('release', { type: 'release', session, attach: 1, name: NAME, token, key, acks: [] });
        return;
      case 'cancel':
        this.#ask('cancel', { type: 'cancel', session, attach: 1, key, acks: [] });
        return;
      case null:
        return;
    }
  }

  /** As sidecars do every TTL/5: so a client learns of an end that nobody could tell it when it came. */
  keepAlive(): void {
    const sessions = [{ session: this.#session, attach: 1 }];
    this.#stream.send({ format: 1, requests: [], keepalive: { number: 1, sessions } });
  }

  close(): void {
    if (this.#asked !== null) return;
    this.#ask('close', { type: 'closeSession', session: this.#session, attach: 1, clean: true });
  }

  get #key(): string {
    return `key-of-${this.name}`;
  }

  #ask(what: Asked, body: ClientRequestBody): void {
    this.#asked = what;
    this.#lastId++;
    this.#stream.send({ format: 1, requests: [{ id: this.#lastId, body }] });
  }

  #hear({ answers, notices, keepalive }: ServerFrame): void {
    if (keepalive?.sessions.some(({ alive }) => !alive) === true) this.#over();
    for (const { id, body } of answers) {
      this.heard.push(JSON.stringify(body));
      if (id === this.#lastId) this.#answered(body);
    }
    for (const { event } of notices) {
      this.heard.push(JSON.stringify(event));
      if (event.type === 'granted' && this.#asked === 'acquire') this.#granted(event.token);
      else if (event.type === 'sessionEnding') this.#over();
      else if (event.type === 'refused' && this.#asked === 'acquire') this.#over();
    }
  }

  #answered(body: AnswerBody): void {
    if (body.type === 'opened') {
      this.#session = body.session;
      this.#asked = null;
    } else if (body.type === 'granted') this.#granted(body.token);
    else if (body.type === 'queued') this.#isQueued = true;
    else this.#over();
  }

  #granted(token: number): void {
    const { judge, world } = this.#around;
    this.#asked = null;
    this.#token = token;
    const grant = { lineage: LINEAGE, session: this.#session, name: NAME, token };
    judge.client({ type: 'grantReported', ...grant, key: this.#key, at: world.nowMs });
    judge.client({ type: 'gaveUp', ...grant, at: world.nowMs });
  }

  #over(): void {
    this.#asked = null;
    this.#isDone = true;
  }
}
