/**
 * A leader alone on virtual time, with a log whose appends a test holds in its hand, and front ends that write down what
 * they are sent. For the rules about what is answered when (S1, S2, S5, S6, S9, S11, C13).
 */
import type { NamespaceConfig } from '../../../src/api/config.ts';
import type {
  Acquire,
  Attach,
  ClientCommand,
  CloseSession,
  Command,
  CommandResult,
  HistoryEntry,
  Identity,
  LockEvent,
  OpenSession,
  SessionId,
} from '../../../src/api/entry.ts';
import { FORMAT_VERSION } from '../../../src/api/limits.ts';
import type {
  AnswerBody,
  KeepaliveAnswer,
  LeaderFrame,
  Position,
  ReadQuery,
  SessionNotice,
} from '../../../src/api/wire.ts';
import { MemoryStore } from '../../../src/log/memory-store.ts';
import { Leader } from '../../../src/server/leader/leader.ts';
import type { LeaderOptions, StopReason } from '../../../src/server/leader/leader-options.ts';
import type { FrontEndLink } from '../../../src/server/leader/outbox.ts';
import { acquireCommand, namespaceConfig, openCommand, SECRET_HASH } from '../core.ts';
import { VirtualRuntime } from '../virtual-runtime.ts';
import { HeldLog } from './held-log.ts';

/** One millisecond is much longer than anything takes here that is not held back. */
const SHORT_MS = 1;

interface Sent<T> {
  readonly atMs: number;
  readonly position: Position;
  readonly client: number;
  readonly what: T;
}

/** One front end's stream to the leader, with what came over it. */
export class FrontEndStub implements FrontEndLink {
  readonly frames: { readonly atMs: number; readonly frame: LeaderFrame }[] = [];
  readonly answers: Sent<{ readonly id: number; readonly body: AnswerBody }>[] = [];
  readonly notices: Sent<SessionNotice>[] = [];
  readonly keepalives: Sent<KeepaliveAnswer>[] = [];
  readonly #bench: LeaderBench;
  readonly #identities = new Map<number, Identity>();
  #lastId = 0;

  constructor(bench: LeaderBench) {
    this.#bench = bench;
  }

  send(frame: LeaderFrame): void {
    const atMs = this.#bench.runtime.nowMs;
    const { position } = frame;
    this.frames.push({ atMs, frame });
    for (const { client, answers, notices, keepalives } of frame.groups) {
      const sent = <T>(what: T): Sent<T> => ({ atMs, position, client, what });
      this.answers.push(...answers.map(sent));
      this.notices.push(...notices.map(sent));
      this.keepalives.push(...keepalives.map(sent));
    }
  }

  /** Sends requests of one client stream in one frame; their ids. */
  ask(client: number, ...bodies: readonly (ClientCommand | ReadQuery)[]): number[] {
    const requests = bodies.map((body) => ({ id: ++this.#lastId, body }));
    const groups = [{ client, requests, ...this.#introduction(client) }];
    this.#bench.leader.receive(this, { format: FORMAT_VERSION, groups, closed: [] });
    return requests.map(({ id }) => id);
  }

  keepalive(client: number, number: number, ...sessions: readonly (readonly [SessionId, number])[]): void {
    const keepalive = { number, sessions: sessions.map(([session, attach]) => ({ session, attach })) };
    this.#bench.leader.receive(this, {
      format: FORMAT_VERSION,
      groups: [{ client, requests: [], keepalive, ...this.#introduction(client) }],
      closed: [],
    });
  }

  closeClient(client: number): void {
    this.#bench.leader.receive(this, { format: FORMAT_VERSION, groups: [], closed: [client] });
  }

  /** Whoever is not given another identity is the one that sessions are opened with. */
  introduce(client: number, identity: Identity): void {
    this.#identities.set(client, identity);
  }

  #introduction(client: number): { readonly identity: Identity } {
    return { identity: this.#identities.get(client) ?? openCommand().identity };
  }

  answerTo(id: number | undefined): AnswerBody | undefined {
    return this.answers.find(({ what }) => what.id === id)?.what.body;
  }

  /** Asks one thing and lets time pass until it is answered. */
  async get(client: number, body: ClientCommand | ReadQuery): Promise<AnswerBody> {
    const [id] = this.ask(client, body);
    await this.#bench.runtime.pass(SHORT_MS);
    const answer = this.answerTo(id);
    if (answer === undefined) throw new Error(`no answer to ${body.type}`);
    return answer;
  }

  /** Opens a session over this client stream. */
  async open(client: number, differs: Partial<OpenSession> = {}): Promise<SessionId> {
    const answer = await this.get(client, openCommand(differs));
    if (answer.type !== 'opened') throw new Error(`not opened: ${JSON.stringify(answer)}`);
    return answer.session;
  }

  async acquire(
    client: number,
    differs: Partial<Acquire> & Pick<Acquire, 'session' | 'key'>,
  ): Promise<AnswerBody> {
    return this.get(client, acquireCommand(differs));
  }
}

export interface BenchOptions extends Partial<Omit<LeaderOptions, 'runtime' | 'log' | 'onStopped'>> {
  readonly config?: Partial<NamespaceConfig> | null;
}

export class LeaderBench {
  readonly runtime: VirtualRuntime;
  readonly store: MemoryStore;
  readonly history: HistoryEntry[] = [];
  readonly stopped: StopReason[] = [];
  log: HeldLog;
  #leader: Leader | null = null;

  private constructor(runtime: VirtualRuntime, store: MemoryStore) {
    this.runtime = runtime;
    this.store = store;
    this.log = new HeldLog(store);
  }

  /** A leader that has taken over and is configured. */
  static async start({ config = {}, ...options }: BenchOptions = {}): Promise<LeaderBench> {
    const bench = new LeaderBench(new VirtualRuntime(), new MemoryStore('test-lineage'));
    await bench.lead(options);
    if (config !== null) {
      const configured = await bench.submit({
        type: 'configure',
        version: 1,
        config: namespaceConfig(config),
      });
      if (configured.type !== 'done') throw new Error('not configured');
    }
    return bench;
  }

  get leader(): Leader {
    if (this.#leader === null) throw new Error('nobody leads');
    return this.#leader;
  }

  /** Everything that happened, in order. */
  get events(): readonly LockEvent[] {
    return this.history.flatMap(({ events }) => events);
  }

  /** A new process takes the log over, with a handle of its own. */
  async lead(options: Omit<BenchOptions, 'config'> = {}): Promise<Leader> {
    this.log = new HeldLog(this.store);
    const starting = Leader.start({
      runtime: this.runtime,
      log: this.log,
      serverId: 'test',
      reason: 'test',
      replicas: 1,
      tokenFloor: 0,
      beatWhenIdle: false,
      onCommitted: (entry) => void this.history.push(entry),
      onStopped: (reason) => void this.stopped.push(reason),
      ...options,
    });
    this.#leader = await this.runtime.until(starting, 1_000);
    return this.#leader;
  }

  frontEnd(): FrontEndStub {
    return new FrontEndStub(this);
  }

  async submit(command: Command): Promise<CommandResult> {
    const [result] = await this.runtime.until(this.leader.submit([command]), 1_000);
    return result as CommandResult;
  }
}

export function attachCommand(session: SessionId, attach: number): Attach {
  return { type: 'attach', session, attach, secretHash: SECRET_HASH };
}

export function closeCommand(session: SessionId, differs: Partial<CloseSession> = {}): CloseSession {
  return { type: 'closeSession', session, attach: 1, clean: true, ...differs };
}
