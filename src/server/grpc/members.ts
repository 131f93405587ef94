/** The method `Inspect.Members`: how each replica of a group is, gathered by the one that is asked. */
import type { MemberMessage, MembersRequest, MembersResponse } from './messages.ts';
import type { Served } from './served.ts';

/** A replica that takes longer is shown as unreachable. */
const ANSWER_MS_MAX = 2_000;
/** Entries that a replica may be behind before it counts as behind: what a standby has not seen between two looks at full load. */
const LAG_ENTRIES_MAX = 1_000;

export async function membersOf(served: Served, request: MembersRequest): Promise<MembersResponse> {
  const own = await ownReport(served);
  const { peers } = served;
  if (request.onlySelf || peers === undefined) return gathered([own]);
  const others = await Promise.all(
    peers.ids.map(async (serverId) => {
      const asked = { namespace: request.namespace, onlySelf: true };
      try {
        const answer = await peers.ask(serverId, 'leasehold.v1.Inspect', 'Members', asked, ANSWER_MS_MAX);
        return (answer as unknown as MembersResponse).members[0] ?? unreachable(serverId, 'it said nothing');
      } catch (error) {
        return unreachable(serverId, whyUnreachable(error));
      }
    }),
  );
  return gathered([own, ...others]);
}

/** The newest entry that any of them has seen counts for all: a replica that is cut off from the log does not know its own lag. */
function gathered(members: readonly MemberMessage[]): MembersResponse {
  const logIndex = Math.max(...members.map((member) => Math.max(member.logIndex, member.position.index)));
  const sorted = [...members].sort((a, b) => (a.serverId < b.serverId ? -1 : 1));
  return { members: sorted.map((member) => judged(member, logIndex)), logIndex };
}

function judged(member: MemberMessage, logIndex: number): MemberMessage {
  if (member.role === 'unreachable') return member;
  const lag = Math.max(0, logIndex - member.position.index);
  return { ...member, lag, problem: member.problem || problemOf({ ...member, lag }) };
}

function problemOf({ role, lag, logIndex, connected }: MemberMessage): string {
  if (logIndex === 0) return 'the log does not answer it';
  if (role === 'starting') return 'it is reading the log';
  if (!connected) return 'it has no stream to the leader';
  return lag > LAG_ENTRIES_MAX ? `it is ${lag} entries behind` : '';
}

async function ownReport({ replica }: Served): Promise<MemberMessage> {
  const { serverId, role, position, logIndex, connected, clients, problem } = await replica.status();
  return { serverId, role, position, logIndex: logIndex ?? 0, lag: 0, connected, clients, problem };
}

/** gRPC tells every address that it tried, and how to go on; people want the first cause. */
function whyUnreachable(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const cause = /\b(E[A-Z]{3,}(?: [0-9a-f.:[\]]*[0-9a-f\]])?)/.exec(text)?.[1];
  return cause === undefined ? text : `no connection: ${cause}`;
}

function unreachable(serverId: string, problem: string): MemberMessage {
  const position = { lineage: '', epoch: 0, index: 0 };
  return {
    serverId,
    role: 'unreachable',
    position,
    logIndex: 0,
    lag: 0,
    connected: false,
    clients: 0,
    problem,
  };
}
