/**
 * What the leader before leaves to its successor (rule S4): first the sessions of this front end's clients, in bulk, then what has no answer
 * yet, in order.
 */
import { FORMAT_VERSION } from '../../api/limits.ts';
import type { Position, Reattachment, RelayGroup } from '../../api/wire.ts';
import { type Client, groupOf, type LeaderPort } from './client.ts';

/** Sessions, and requests, in one frame. */
const PER_FRAME_MAX = 1_000;

/** `seen`: of the newest frame that was passed on to clients. */
export function reattach(leader: LeaderPort, clients: readonly Client[], seen: Position): void {
  const sessions = clients.flatMap(({ number: client, memory }) =>
    [...memory.sessions].map(([session, attach]): Reattachment => ({ client, session, attach })),
  );
  for (const part of inParts(sessions)) {
    leader.send({ format: FORMAT_VERSION, groups: [], closed: [], reattach: { sessions: part, seen } });
  }
  leader.send({ format: FORMAT_VERSION, groups: [], closed: [], allAttached: true });
}

/** A client's mark, for this leader to compare too (rule S10), and its requests without an answer. */
export function sendAgain(leader: LeaderPort, client: Client): void {
  const { mark, memory } = client;
  if (mark !== null) send(leader, groupOf(client, leader, { requests: [], mark }));
  for (const requests of inParts(memory.unanswered)) send(leader, groupOf(client, leader, { requests }));
}

function send(leader: LeaderPort, group: RelayGroup): void {
  leader.send({ format: FORMAT_VERSION, groups: [group], closed: [] });
}

function* inParts<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += PER_FRAME_MAX)
    yield items.slice(from, from + PER_FRAME_MAX);
}
