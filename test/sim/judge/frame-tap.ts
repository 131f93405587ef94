/**
 * Listens on the streams between a sidecar and a group: what was acknowledged, and whether it was allowed to be
 * (rules S1, A3). Knows only the public frames.
 */
import type { SessionId, Token } from '../../../src/api/entry.ts';
import type { ClientFrame, ClientRequestBody, ServerFrame } from '../../../src/api/wire.ts';
import type { Deadline } from '../../../src/sidecar/service.ts';
import type { Machine } from '../world/machine.ts';
import type { FrameWatch } from '../world/network.ts';
import type { Life } from '../world/process.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { Findings } from './findings.ts';
import type { GroupJudge } from './group-judge.ts';

/** A request is stamped a moment before its frame is sent. */
const ROUNDING_MS = 1;

const LIMITED: ReadonlySet<ClientRequestBody['type']> = new Set(['acquire', 'getLock', 'listLocks']);

/** Promise 5: what is kept in hand for clocks that run apart. */
function marginMs(ttlMs: number): number {
  return Math.max(500, ttlMs / 5);
}

interface Moment {
  readonly atUs: number;
  /** On the sidecar's clock. */
  readonly monotonicMs: number;
}

interface Sent extends Moment {
  readonly body: ClientRequestBody;
}

/** One stream as both ends see it. */
interface Stream {
  readonly requests: Map<number, Sent>;
  readonly keepalivesSent: Map<number, Moment>;
  /** The last entry its leader had built when this arrived: requests by id, keepalives by number. */
  readonly requestsBehind: Map<number, number>;
  readonly keepalivesBehind: Map<number, number>;
}

export interface FrameTapOptions {
  readonly name: string;
  readonly judge: GroupJudge;
  readonly machine: Machine;
  /** Of the group's log now. */
  readonly lineage: () => string;
  readonly findings: Findings;
  /** Why the sidecar must not renew this session now; null: it may (rule A3). */
  readonly renewalProblem: (session: SessionId) => string | null;
  /** Whether the leader is in this process: what arrives here arrives there. */
  readonly leads: (server: Life) => boolean;
  /** Its sidecar runs on the copy of a state file: what it gives up may be taken up again by whom it was copied from. */
  readonly isCopy?: boolean;
}

export class FrameTap implements FrameWatch {
  readonly #world: World;
  readonly #options: FrameTapOptions;
  readonly #streams = new Map<number, Stream>();
  /** Their clients have left them. What was on its way still arrives at the server, and nobody hears the answers. */
  readonly #ended = new Set<number>();
  /** When the last acknowledged keepalive or attach of each session was sent, on the sidecar's clock. */
  readonly #acknowledgedMs = new Map<SessionId, number>();

  constructor(world: World, options: FrameTapOptions) {
    this.#world = world;
    this.#options = options;
  }

  clientSent(number: number, frame: ClientFrame): void {
    const { requests, keepalive } = frame;
    this.#world.trace?.(`${this.#options.name}#${number} sends ${JSON.stringify(frame)}`);
    const stream = this.#stream(number);
    if (stream === null) throw new Error(`stream ${number} has ended and sends`);
    const moment = { atUs: this.#world.nowUs, monotonicMs: this.#options.machine.monotonicMs() };
    for (const { id, body } of requests) stream.requests.set(id, { ...moment, body });
    if (keepalive === undefined) return;
    stream.keepalivesSent.set(keepalive.number, moment);
    for (const { session } of keepalive.sessions) {
      const problem = this.#options.renewalProblem(session);
      if (problem !== null)
        this.#options.findings.add('rule A3', `session ${session} is kept alive: ${problem}`);
    }
  }

  serverReached(_number: number, { keepalive }: ClientFrame, server: Life): void {
    if (!this.#options.leads(server)) return;
    for (const { session, attach } of keepalive?.sessions ?? []) this.#options.judge.knocked(session, attach);
  }

  serverReceived(number: number, { requests, keepalive }: ClientFrame, server: Life): void {
    const { judge, leads } = this.#options;
    const stream = this.#stream(number);
    const isAtLeader = leads(server);
    // Elsewhere it has a way to go; by then at least this much was certain before it was asked.
    const behind = isAtLeader ? judge.builtBy(server) : judge.entries;
    for (const { id } of requests) stream?.requestsBehind.set(id, behind);
    if (keepalive === undefined) return;
    stream?.keepalivesBehind.set(keepalive.number, behind);
    if (!isAtLeader) return;
    for (const { session, attach } of keepalive.sessions) judge.heard(session, attach);
  }

  /** Rule S1: whatever needs the state is said after a commit that was first sent after the question arrived. */
  serverSent(number: number, { answers, keepalive, position }: ServerFrame): void {
    const stream = this.#stream(number);
    if (stream === null) return;
    for (const { id, body } of answers) {
      const behind = stream.requestsBehind.get(id);
      stream.requestsBehind.delete(id);
      if (body.type !== 'rejected') this.#checkCertain(`request ${id}`, behind, position.index);
    }
    if (keepalive === undefined) return;
    const behind = stream.keepalivesBehind.get(keepalive.number);
    stream.keepalivesBehind.delete(keepalive.number);
    this.#checkCertain(`keepalive ${keepalive.number}`, behind, position.index);
    for (const { session, attach, alive } of keepalive.sessions)
      if (alive) this.#options.judge.attaches.keptAlive(session, attach, position.index);
  }

  clientReceived(number: number, frame: ServerFrame): void {
    const { answers, keepalive } = frame;
    this.#world.trace?.(`${this.#options.name}#${number} hears ${JSON.stringify(frame)}`);
    const stream = this.#stream(number);
    if (stream === null) throw new Error(`stream ${number} has ended and is heard`);
    for (const { id, body } of answers) {
      const sent = stream.requests.get(id);
      stream.requests.delete(id);
      if (sent !== undefined) this.#answered(sent, body);
    }
    if (keepalive === undefined) return;
    const sent = stream.keepalivesSent.get(keepalive.number);
    stream.keepalivesSent.delete(keepalive.number);
    if (sent === undefined) return;
    for (const status of keepalive.sessions) if (status.alive) this.#acknowledged(status.session, sent);
  }

  ended(number: number): void {
    this.#streams.delete(number);
    this.#ended.add(number);
  }

  #answered(sent: Sent, answer: ServerFrame['answers'][number]['body']): void {
    const { judge } = this.#options;
    const lineage = this.#options.lineage();
    const { body } = sent;
    // Rule S9: what gives something back, or keeps it, has no rate limit.
    if (answer.type === 'rejected' && answer.code === 'RATE_LIMITED' && !LIMITED.has(body.type))
      this.#options.findings.add('rule S9', `a ${body.type} was refused for its rate`);
    const at = this.#world.nowMs;
    if (answer.type === 'opened') this.#acknowledged(answer.session, sent);
    if (answer.type === 'attached' && body.type === 'attachWithSecret')
      this.#acknowledged(body.session, sent);
    if (answer.type !== 'done' || this.#options.isCopy === true) return;
    if (body.type === 'cancel') {
      judge.client({ type: 'cancelConfirmed', lineage, session: body.session, key: body.key, at });
    } else if (body.type === 'release') {
      const { session, name, token, key } = body;
      const ofKey = key === '' ? {} : { key };
      judge.client({ type: 'releaseConfirmed', lineage, session, name, token, ...ofKey, at });
    }
  }

  /** The sidecar has started again, or the group begun anew, and knows of no acknowledgement. */
  restarted(): void {
    this.#acknowledgedMs.clear();
  }

  /** Rule A1, in the moment in which the sidecar tells the deadline of a grant. */
  checkDeadline(session: SessionId, token: Token, { deadlineMonotonicNs }: Deadline): void {
    const { judge, findings } = this.#options;
    if (!judge.lineages.isOfThis(token)) return;
    const ttlMs = judge.ttlOf(session);
    const sentMs = this.#acknowledgedMs.get(session);
    const toldMs = Number(deadlineMonotonicNs) / 1e6;
    if (ttlMs !== undefined) this.#checkRevoked(session, token, { toldMs, ttlMs });
    const limitMs = ttlMs === undefined || sentMs === undefined ? 0 : sentMs + ttlMs - marginMs(ttlMs);
    if (toldMs <= limitMs + ROUNDING_MS) return;
    const message = `session ${session} is told ${toldMs} as its deadline; its last acknowledged keepalive, of ${sentMs}, allows ${limitMs}`;
    findings.add('rule A1', message);
  }

  /** Rule C9: what was acknowledged of a grant after its revoke was certain extends it no more. */
  #checkRevoked(
    session: SessionId,
    token: Token,
    { toldMs, ttlMs }: { readonly toldMs: number; readonly ttlMs: number },
  ): void {
    const { judge, machine, findings } = this.#options;
    const revokedUs = judge.revokedAtUs(token);
    // A sleep of the machine counts on one clock and not on the other.
    if (revokedUs === undefined || machine.sleeps > 0) return;
    const limitUs = revokedUs + ((ttlMs - marginMs(ttlMs) + ROUNDING_MS) / machine.rate) * US_PER_MS;
    if (machine.usAt(toldMs) <= limitUs) return;
    const message = `session ${session} is told ${toldMs} as the deadline of token ${token}, though its revoke was certain at ${revokedUs / US_PER_MS}`;
    findings.add('rule C9', message);
  }

  #acknowledged(session: SessionId, { atUs, monotonicMs }: Moment): void {
    this.#options.judge.acknowledged(session, atUs);
    this.#acknowledgedMs.set(session, Math.max(monotonicMs, this.#acknowledgedMs.get(session) ?? 0));
  }

  #checkCertain(what: string, behind: number | undefined, index: number): void {
    const { findings, judge } = this.#options;
    if (behind === undefined) findings.add('rule S2', `${what} was answered without having arrived`);
    else if (index <= behind) {
      const message = `${what} arrived after entry ${behind} was sent to the log and was answered with entry ${index}`;
      findings.add('rule S1', message);
    } else if (index > judge.entries) {
      findings.add('rule S1', `${what} was answered with entry ${index}, the log ends at ${judge.entries}`);
    }
  }

  /** Null: its client has left it. */
  #stream(number: number): Stream | null {
    if (this.#ended.has(number)) return null;
    let stream = this.#streams.get(number);
    if (stream === undefined) {
      stream = {
        requests: new Map(),
        keepalivesSent: new Map(),
        requestsBehind: new Map(),
        keepalivesBehind: new Map(),
      };
      this.#streams.set(number, stream);
    }
    return stream;
  }
}
