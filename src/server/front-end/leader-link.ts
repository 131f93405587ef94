/**
 * Keeps the front end of a replica on whoever leads: the leader in its own process, or a stream to another replica. It finds that one by
 * the log, which says who won it last; whether that one still lives shows on the stream (rules S4, S7).
 */
import { BEHAVIOUR_LEVEL_MAX, FORMAT_VERSION } from '../../api/limits.ts';
import type { LeaderFrame, Position, RelayFrame } from '../../api/wire.ts';
import type { LockLog } from '../../log/port.ts';
import type { Runtime, Timer } from '../../platform/runtime.ts';
import type { Leader } from '../leader/leader.ts';
import type { LeaderPort } from './client.ts';
import type { FrontEnd } from './front-end.ts';

/** How often it looks for a leader while it has none, with jitter between half and one and a half of it: one read of a small key. */
const SEEK_MS = 60;
/** A stream is accepted within this time, or given up. */
const ACCEPT_MS_MAX = 1_000;
/** A leader that says nothing for so long, although it should every 200 ms, is tried over a new stream. */
const SILENCE_MS_MAX = 2_000;
/**
 * How often the leader hears how far this standby has applied the log (rule L4), and what it can apply (rule C15): also the only look while
 * the leader is heard.
 */
const TELL_MS = 1_000;
/** A leader pings every 200 ms; after three it is unheard (rule S7). */
const UNHEARD_MS = 600;

const NOTHING: RelayFrame = { format: FORMAT_VERSION, groups: [], closed: [] };

export interface LeaderStream {
  send(frame: RelayFrame): void;
  close(): void;
}

export interface LeaderStreamHandler {
  onFrame(frame: LeaderFrame): void;
  /** `isAnswered`: the replica there is alive, and says that it does not lead. */
  onClose(isAnswered: boolean): void;
  onError(error: unknown): void;
}

/** Opens a stream to another replica; null: it is none of the group. */
export type DialLeader = (serverId: string, handler: LeaderStreamHandler) => LeaderStream | null;

export interface LeaderLinkOptions {
  readonly runtime: Runtime;
  readonly log: LockLog;
  readonly serverId: string;
  readonly frontEnd: FrontEnd;
  readonly dial: DialLeader;
  /** The last entry that this replica has applied. */
  readonly appliedIndex: () => number;
  /** The stream to the leader is gone: it may be unheard sooner than its silence says. */
  readonly onLost?: () => void;
  /** The leader, on its stream, is at this index. */
  readonly onHeard?: (index: number) => void;
}

/** One try to be on one leader. */
interface Line {
  readonly epoch: number;
  readonly stream: LeaderStream;
  /** Of the newest frame; null before the first. */
  position: Position | null;
  heardAtMs: number;
}

export class LeaderLink {
  readonly #options: LeaderLinkOptions;
  #line: Line | null = null;
  #own: Leader | null = null;
  #timer: Timer | null = null;
  #isStopped = false;
  /** Of the leader that the log named last; 0 = it named nobody. */
  #epoch = 0;
  #epochSinceMs: number;
  /** When the log said last who leads. */
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  /** The leader of `#epoch` did not take a stream. */
  #hasFailed = false;

  constructor(options: LeaderLinkOptions) {
    this.#options = options;
    this.#epochSinceMs = this.#nowMs();
    this.#plan(0);
  }

  /** Epoch of the leader that the log named last, whether it lives or not; 0 = nobody. */
  get epoch(): number {
    return this.#epoch;
  }

  /** How long the log has named this leader. */
  get epochAgeMs(): number {
    return this.#nowMs() - this.#epochSinceMs;
  }

  /** How long ago the log said who leads. Without that this replica knows nothing: it may be the one that is cut off. */
  get answerAgeMs(): number {
    return this.#nowMs() - this.#answeredAtMs;
  }

  /** The front end has a leader that it can talk to. */
  get isOnLeader(): boolean {
    return this.#own !== null || this.#line?.position != null;
  }

  /** Whether the leader that the log names gives no sign of life here (rule S7). */
  get isUnheard(): boolean {
    if (this.#own !== null || this.#epoch === 0) return false;
    if (this.#line?.position != null) return this.#nowMs() - this.#line.heardAtMs >= UNHEARD_MS;
    return this.#hasFailed;
  }

  /** So long the leader is not unheard, unless its stream is lost; 0: it is, or may be at any moment. */
  get heardForMs(): number {
    const line = this.#line;
    return line?.position == null ? 0 : Math.max(0, line.heardAtMs + UNHEARD_MS - this.#nowMs());
  }

  /** The leader is in this process from now on. */
  lead(leader: Leader): void {
    const { frontEnd } = this.#options;
    this.#hangUp();
    this.#timer?.cancel();
    this.#own = leader;
    this.#epoch = leader.position.epoch;
    const link = { send: (frame: LeaderFrame) => frontEnd.fromLeader(frame) };
    leader.connect(link);
    frontEnd.setLeader({
      get position() {
        return leader.position;
      },
      send: (frame) => leader.receive(link, frame),
    });
    leader.receive(link, { ...NOTHING, behaviour: BEHAVIOUR_LEVEL_MAX });
  }

  /** This process leads no more, or the log shows a leader of a higher epoch. */
  seekAnew(): void {
    this.#own = null;
    this.#hangUp();
    this.#options.frontEnd.setLeader(null);
    this.#plan(0);
  }

  /** A committed entry of this epoch was seen: an older leader is none any more. */
  sawEpoch(epoch: number): void {
    if (this.#own === null && this.#line !== null && this.#line.epoch < epoch) this.seekAnew();
  }

  stop(): void {
    this.#isStopped = true;
    this.#own = null;
    this.#timer?.cancel();
    this.#hangUp();
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#isStopped || this.#own !== null) return;
    this.#timer = this.#options.runtime.timers.after(delayMs, () => {
      this.#look()
        .catch((error: unknown) =>
          this.#options.runtime.logger.debug({ error }, 'the log does not say who leads'),
        )
        .finally(() => this.#plan(this.#nextLookMs()));
    });
  }

  /** Often while it seeks; while a leader is heard, when it is to be told something or has been silent for too long. */
  #nextLookMs(): number {
    const line = this.#line;
    if (line === null) return SEEK_MS * (0.5 + this.#options.runtime.random.fraction());
    const silentMs = this.#nowMs() - line.heardAtMs;
    if (line.position === null) return Math.max(0, ACCEPT_MS_MAX - silentMs);
    return Math.max(0, Math.min(TELL_MS, SILENCE_MS_MAX - silentMs));
  }

  async #look(): Promise<void> {
    const line = this.#line;
    if (this.#own !== null) return;
    if (line !== null) {
      const limitMs = line.position === null ? ACCEPT_MS_MAX : SILENCE_MS_MAX;
      if (this.#nowMs() - line.heardAtMs >= limitMs) this.#lost(line, false);
      else if (line.position !== null) this.#tell(line);
      return;
    }
    const leader = await this.#options.log.leader();
    this.#answeredAtMs = this.#nowMs();
    if (this.#isStopped || this.#own !== null || this.#line !== null) return;
    this.#name(leader?.epoch ?? 0);
    // Its own name: this process has won and does not serve yet, or an earlier life of it has left its key.
    if (leader === null || leader.serverId === this.#options.serverId) return;
    this.#dial(leader.serverId, leader.epoch);
  }

  #name(epoch: number): void {
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#epochSinceMs = this.#nowMs();
    this.#hasFailed = false;
  }

  #dial(serverId: string, epoch: number): void {
    const { dial, runtime } = this.#options;
    let line: Line | null = null;
    const stream = dial(serverId, {
      onFrame: (frame) => {
        if (line !== null && line === this.#line) this.#heard(line, frame);
      },
      onClose: (isAnswered) => {
        if (line !== null && line === this.#line) this.#lost(line, isAnswered);
      },
      onError: (error) => runtime.logger.error({ serverId, error }, 'a frame of the leader cannot be read'),
    });
    if (stream === null) {
      runtime.logger.error({ serverId }, 'the leader is no replica of this group as configured');
      return;
    }
    line = { epoch, stream, position: null, heardAtMs: this.#nowMs() };
    this.#line = line;
  }

  #heard(line: Line, frame: LeaderFrame): void {
    // Rule S10: two lives of a log know nothing of each other; whoever is of the older one opens it again.
    if (frame.position.lineage !== this.#options.log.lineage) {
      this.#lost(line, true);
      return;
    }
    line.heardAtMs = this.#nowMs();
    const isAccepted = line.position === null;
    line.position = frame.position;
    if (isAccepted) this.#accepted(line);
    // One without groups is a sign of life. It must not count as what clients have seen: what it stands for may still be on its way.
    if (frame.groups.length > 0) this.#options.frontEnd.fromLeader(frame);
    this.#options.onHeard?.(frame.position.index);
  }

  #accepted(line: Line): void {
    this.#hasFailed = false;
    const port: LeaderPort = {
      get position() {
        return line.position as Position;
      },
      send: (frame) => line.stream.send(frame),
    };
    this.#options.frontEnd.setLeader(port);
    this.#tell(line);
  }

  #tell(line: Line): void {
    const applied = this.#options.appliedIndex();
    line.stream.send({
      ...NOTHING,
      behaviour: BEHAVIOUR_LEVEL_MAX,
      ...(applied === 0 ? {} : { applied }),
    });
  }

  #lost(line: Line, isAnswered: boolean): void {
    this.#hangUp();
    if (line.position === null) {
      this.#hasFailed = !isAnswered;
      this.#plan(SEEK_MS / 2);
      return;
    }
    // A stream may break and its leader live: only one that does not take a new one has failed.
    this.#options.frontEnd.setLeader(null);
    this.#plan(0);
  }

  #hangUp(): void {
    const line = this.#line;
    if (line === null) return;
    this.#line = null;
    line.stream.close();
    this.#options.onLost?.();
  }

  #nowMs(): number {
    return this.#options.runtime.clock.monotonicMs();
  }
}
