/**
 * Listens on the streams between a sidecar and a group: what was acknowledged, and whether it was allowed to be
 * (rules S1, A3). Knows only the public frames.
 */
import type { SessionId } from '../../../src/api/entry.ts';
import type { ClientFrame, ClientRequestBody, ServerFrame } from '../../../src/api/wire.ts';
import type { FrameWatch } from '../world/network.ts';
import type { Life } from '../world/process.ts';
import type { World } from '../world/world.ts';
import type { Findings } from './findings.ts';
import type { GroupJudge } from './group-judge.ts';

interface Sent {
  readonly atUs: number;
  readonly body: ClientRequestBody;
}

/** One stream as both ends see it. */
interface Stream {
  readonly requests: Map<number, Sent>;
  /** Keepalives by number: when sent, and the last entry its leader had built when they arrived. */
  readonly keepalivesSentUs: Map<number, number>;
  readonly arrivedBehind: Map<number, number>;
}

export interface FrameTapOptions {
  readonly name: string;
  readonly judge: GroupJudge;
  readonly lineage: string;
  readonly findings: Findings;
  /** Why the sidecar must not renew this session now; null: it may (rule A3). */
  readonly renewalProblem: (session: SessionId) => string | null;
}

export class FrameTap implements FrameWatch {
  readonly #world: World;
  readonly #options: FrameTapOptions;
  readonly #streams = new Map<number, Stream>();

  constructor(world: World, options: FrameTapOptions) {
    this.#world = world;
    this.#options = options;
  }

  clientSent(number: number, frame: ClientFrame): void {
    const { requests, keepalive } = frame;
    this.#world.trace?.(`${this.#options.name}#${number} sends ${JSON.stringify(frame)}`);
    const stream = this.#stream(number);
    const atUs = this.#world.nowUs;
    for (const { id, body } of requests) stream.requests.set(id, { atUs, body });
    if (keepalive === undefined) return;
    stream.keepalivesSentUs.set(keepalive.number, atUs);
    for (const { session } of keepalive.sessions) {
      const problem = this.#options.renewalProblem(session);
      if (problem !== null)
        this.#options.findings.add('rule A3', `session ${session} is kept alive: ${problem}`);
    }
  }

  serverReceived(number: number, { keepalive }: ClientFrame, server: Life): void {
    if (keepalive === undefined) return;
    const { judge } = this.#options;
    this.#stream(number).arrivedBehind.set(keepalive.number, judge.builtBy(server));
    for (const { session, attach } of keepalive.sessions) judge.heard(session, attach);
  }

  serverSent(number: number, { keepalive, position }: ServerFrame): void {
    if (keepalive === undefined) return;
    const stream = this.#streams.get(number);
    // Its client has left; nobody hears this.
    if (stream === undefined) return;
    const behind = stream.arrivedBehind.get(keepalive.number);
    stream.arrivedBehind.delete(keepalive.number);
    const { findings } = this.#options;
    if (behind === undefined) {
      findings.add('rule S2', `keepalive ${keepalive.number} was answered without having arrived`);
    } else if (position.index <= behind) {
      const message = `keepalive ${keepalive.number} arrived after entry ${behind} was sent to the log and was acknowledged with entry ${position.index}`;
      findings.add('rule S1', message);
    }
  }

  clientReceived(number: number, frame: ServerFrame): void {
    const { answers, keepalive } = frame;
    this.#world.trace?.(`${this.#options.name}#${number} hears ${JSON.stringify(frame)}`);
    const stream = this.#streams.get(number);
    if (stream === undefined) return;
    for (const { id, body } of answers) {
      const sent = stream.requests.get(id);
      stream.requests.delete(id);
      if (sent !== undefined) this.#answered(sent, body);
    }
    if (keepalive === undefined) return;
    const sentUs = stream.keepalivesSentUs.get(keepalive.number);
    stream.keepalivesSentUs.delete(keepalive.number);
    if (sentUs === undefined) return;
    for (const status of keepalive.sessions) {
      if (status.alive) this.#options.judge.acknowledged(status.session, sentUs);
    }
  }

  ended(number: number): void {
    this.#streams.delete(number);
  }

  #answered({ atUs, body }: Sent, answer: ServerFrame['answers'][number]['body']): void {
    const { judge, lineage } = this.#options;
    const at = this.#world.nowMs;
    if (answer.type === 'opened') judge.acknowledged(answer.session, atUs);
    if (answer.type === 'attached' && body.type === 'attachWithSecret')
      judge.acknowledged(body.session, atUs);
    if (answer.type !== 'done') return;
    if (body.type === 'cancel') {
      judge.client({ type: 'cancelConfirmed', lineage, session: body.session, key: body.key, at });
    } else if (body.type === 'release') {
      const { session, name, token } = body;
      judge.client({ type: 'releaseConfirmed', lineage, session, name, token, at });
    }
  }

  #stream(number: number): Stream {
    let stream = this.#streams.get(number);
    if (stream === undefined) {
      stream = { requests: new Map(), keepalivesSentUs: new Map(), arrivedBehind: new Map() };
      this.#streams.set(number, stream);
    }
    return stream;
  }
}
