/**
 * A client that means harm, or is badly broken: it has a stream like anybody's, has seen numbers of sessions, attaches, tokens and keys,
 * and acts on them as if they were its own (rule C7). Nothing may come of it, whatever it is answered. One that slept over a new lineage
 * means no harm and does the same: its sessions had the numbers that those of others have now (rule S10).
 */
import type { SessionId } from '../../../src/api/entry.ts';
import { FORMAT_VERSION } from '../../../src/api/limits.ts';
import type {
  AnswerBody,
  ClientRequestBody,
  ClientStream,
  Mark,
  ServerFrame,
} from '../../../src/api/wire.ts';
import type { Random } from '../../support/random.ts';
import type { Findings } from '../judge/findings.ts';
import { Link, UNWATCHED } from '../world/network.ts';
import type { VirtualProcess } from '../world/process.ts';
import type { Group } from './group.ts';

/** A stream is used so often. */
const ACTS_PER_STREAM = 8;
const REFUSALS: ReadonlySet<AnswerBody['type']> = new Set(['refused', 'rejected']);

export interface RudeClientOptions {
  readonly process: VirtualProcess;
  readonly groups: readonly Group[];
  readonly findings: Findings;
  readonly random: Random;
  /** Between two acts, ms. */
  readonly everyMs: number;
  readonly delayMs: { readonly from: number; readonly to: number };
  /** What it saw last of the group, if that was in another lineage. */
  readonly mark?: Mark;
}

type Victim =
  Group['judge']['state']['sessions'] extends ReadonlyMap<SessionId, infer Session> ? Session : never;

export class RudeClient {
  readonly #options: RudeClientOptions;
  acts = 0;
  #isStopped = false;

  constructor(options: RudeClientOptions) {
    this.#options = options;
  }

  start(): void {
    const { process, groups, delayMs } = this.#options;
    const life = process.start();
    for (const group of groups) {
      const links = Array.from(
        { length: group.endpoints },
        (_, place) =>
          new Link(process.world, {
            name: `rude ${group.alias} ${place}`,
            watch: UNWATCHED,
            listener: () => group.listener(place),
            delayMs,
          }),
      );
      void this.#annoy(group, () => this.#options.random.pick(links).connect(life, this.#handler(group)));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #annoy(group: Group, connect: () => ClientStream): Promise<void> {
    const { random, everyMs, process, mark } = this.#options;
    while (!this.#isStopped) {
      const stream = connect();
      if (mark !== undefined) stream.send({ format: FORMAT_VERSION, requests: [], mark });
      for (let act = 0; act < ACTS_PER_STREAM && !this.#isStopped; act++) {
        await process.life?.sleep(everyMs * 2 * (random.int(1_000) / 1_000));
        this.#act(group, stream, act + 1);
      }
      stream.close();
    }
  }

  #act(group: Group, stream: ClientStream, number: number): void {
    const { random } = this.#options;
    const sessions = [...group.judge.state.sessions.values()];
    if (sessions.length === 0) return;
    this.acts++;
    const victim = random.pick(sessions);
    const attach = random.chance(0.7) ? victim.attach : random.int(victim.attach + 2);
    const keepalive = { number, sessions: [{ session: victim.id, attach }] };
    const requests = [{ id: number, body: this.#body(victim, attach) }];
    stream.send({ format: FORMAT_VERSION, requests, ...(random.chance(0.5) ? { keepalive } : {}) });
  }

  #body(victim: Victim, attach: number): ClientRequestBody {
    const { random } = this.#options;
    const session = victim.id;
    const holds = [...victim.holds.values()];
    const hold = holds.length === 0 ? null : random.pick(holds);
    const [name, token] = [hold?.lock.name ?? 'job-0', hold?.token ?? 1];
    const key = hold?.record.request.key ?? 'rude';
    switch (random.pick(['release', 'release', 'close', 'acquire', 'cancel', 'attach'] as const)) {
      case 'release':
        return { type: 'release', session, attach, name, token, key, acks: [] };
      case 'close':
        return { type: 'closeSession', session, attach, clean: random.chance(0.5) };
      case 'cancel':
        return { type: 'cancel', session, attach, key, acks: [] };
      case 'attach':
        return { type: 'attachWithSecret', session, attach: victim.attach + 1, secret: 'ab'.repeat(16) };
      case 'acquire':
        return {
          ...{
            type: 'acquire',
            session,
            attach,
            key: `rude-${this.acts}`,
            name,
            mode: 'exclusive',
            permits: 1,
          },
          ...{
            reentrant: false,
            owner: 'rude',
            purpose: '',
            waitMs: 10_000,
            bucket: 0,
            mapVersion: 0,
            acks: [],
          },
        };
    }
  }

  #handler({ alias }: Group) {
    const { findings, mark } = this.#options;
    const rule = mark === undefined ? 'rule C7' : 'rule S10';
    return {
      onFrame: ({ answers, keepalive }: ServerFrame): void => {
        for (const { body } of answers)
          if (!REFUSALS.has(body.type))
            findings.add(rule, `${alias}: a client got ${body.type} for a session that is not its own`);
        for (const { session, alive } of keepalive?.sessions ?? [])
          if (alive) findings.add(rule, `${alias}: session ${session} was kept alive by a stranger`);
      },
      onClose: (): void => undefined,
    };
  }
}
