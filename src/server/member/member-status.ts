/**
 * What a replica says of itself and of its group: its own figures beside what the log says of who leads and how far it has come. A log
 * that does not answer leaves gaps rather than keeping whoever asks waiting.
 */
import type { Position } from '../../api/wire.ts';
import { LogUnavailableError } from '../../log/errors.ts';
import type { LeaderRecord, LockLog, LogPosition, RollBackProof } from '../../log/port.ts';
import type { Timers } from '../../platform/runtime.ts';
import type { Leader } from '../leader/leader.ts';
import type { Standby } from './standby.ts';

/** The log is asked for so long what a status says of it. */
const ANSWER_MS_MAX = 1_000;

export interface MemberStatus {
  readonly serverId: string;
  /** `halted`: the log was rolled back, and nobody serves it. */
  readonly role: 'leading' | 'following' | 'starting' | 'halted';
  readonly halted: RollBackProof | null;
  /** So long nothing is granted yet, since a new lineage has begun; known to the leader. */
  readonly quietMs: number;
  readonly position: Position;
  /** The newest entry of the log; null: the log does not answer. */
  readonly logIndex: number | null;
  /** Entries that it has not applied yet, as far as it knows. */
  readonly lag: number;
  /** Who leads by the log. */
  readonly leader: LeaderRecord | null;
  /** Whether its front end can pass requests on. */
  readonly isOnLeader: boolean;
  readonly clients: number;
  readonly sessions: number;
  readonly held: number;
  readonly waiting: number;
  /** That members of the storage are corrupt or differ, as far as this replica knows (case G16); null: they do not. */
  readonly storageProblem: string | null;
}

/** What the log says; both null: it does not answer. */
export interface LogAnswer {
  readonly head: LogPosition | null;
  readonly leader: LeaderRecord | null;
}

export interface MemberParts
  extends Pick<MemberStatus, 'serverId' | 'halted' | 'isOnLeader' | 'clients' | 'storageProblem'> {
  readonly lineage: string;
  readonly leader: Leader | null;
  readonly standby: Standby | null;
  readonly byLog: LogAnswer;
}

export function memberStatus(parts: MemberParts): MemberStatus {
  const { serverId, halted, isOnLeader, clients, lineage, leader, standby, byLog } = parts;
  const state = leader?.state ?? standby?.state;
  const index = leader?.position.index ?? standby?.index ?? 0;
  return {
    serverId,
    halted,
    quietMs: leader?.quietMs ?? 0,
    role: roleOf(parts),
    position: { lineage, epoch: state?.epoch ?? 0, index },
    logIndex: byLog.head?.index ?? null,
    lag: Math.max(0, (byLog.head?.index ?? 0) - index),
    leader: byLog.leader,
    isOnLeader,
    clients,
    sessions: state?.sessions.size ?? 0,
    held: state?.holds ?? 0,
    waiting: state?.waits ?? 0,
    storageProblem: parts.storageProblem,
  };
}

function roleOf({ halted, leader, standby }: MemberParts): MemberStatus['role'] {
  if (halted !== null) return 'halted';
  if (leader !== null) return 'leading';
  return standby === null ? 'starting' : 'following';
}

export async function askLog(log: LockLog, timers: Timers): Promise<LogAnswer> {
  const unanswered = { head: null, leader: null };
  const answer = Promise.all([log.head(), log.leader()]).then(
    ([head, leader]) => ({ head, leader }),
    (error: unknown) => {
      if (error instanceof LogUnavailableError) return unanswered;
      throw error;
    },
  );
  const patience = new Promise<LogAnswer>((resolve) => {
    timers.after(ANSWER_MS_MAX, () => resolve(unanswered));
  });
  return await Promise.race([answer, patience]);
}
