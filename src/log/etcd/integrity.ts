/**
 * Whether the members of etcd hold the same (case G16). A member whose data were changed behind its back, or by a fault of its own, answers
 * for itself: a fenced commit is a decision of the members' majority, but what it decided is told by the one that was asked. So whoever
 * differs from a majority is not asked. etcd's own check raises the alarm CORRUPT, which refuses every write; this one needs no alarm.
 */
import type { EtcdClient, MemberHash, MemberStatus } from './client.ts';

/** A member commits nothing while it reads all of its data; so much takes it about a tenth of a second. */
const COMPARED_BYTES_MAX = 64 * 1024 * 1024;
/** Members of before differ in their hashes after a compaction, and in nothing else. */
const HASHED_ALIKE_SINCE = [3, 5, 15] as const;

export class EtcdIntegrity {
  readonly #client: EtcdClient;
  readonly #distrusted = new Set<number>();

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  async compare(): Promise<readonly string[] | null> {
    const members = await this.#client.statuses();
    if (members.length < 2 || !members.every(isComparable)) return null;
    const revision = Math.min(...members.map((member) => member.revision));
    const numbers = members.map(({ number }) => number);
    const hashes = await this.#client.hashes(numbers, revision);
    const differing = differingMembers(hashes, this.#client.memberCount);
    if (differing === null) return null;
    // A member that does not answer now stays as it was judged before.
    for (const { number } of hashes) this.#distrusted.delete(number);
    for (const number of differing) this.#distrusted.add(number);
    this.#client.distrust(new Set(this.#distrusted));
    return members.filter(({ number }) => differing.includes(number)).map(({ endpoint }) => endpoint);
  }
}

function isComparable({ usedBytes, version }: MemberStatus): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const [leastMajor, leastMinor, leastPatch] = HASHED_ALIKE_SINCE;
  const isSound =
    major !== leastMajor
      ? major > leastMajor
      : minor !== leastMinor
        ? minor > leastMinor
        : patch >= leastPatch;
  return isSound && usedBytes <= COMPARED_BYTES_MAX;
}

/**
 * Those that differ from what a majority of all `members` holds; without such a majority all that were asked. Null: they cannot be compared,
 * because one has compacted meanwhile, or too few have answered.
 */
export function differingMembers(hashes: readonly MemberHash[], members: number): readonly number[] | null {
  if (hashes.length < 2 || new Set(hashes.map(({ compactRevision }) => compactRevision)).size > 1)
    return null;
  const byHash = Map.groupBy(hashes, ({ hash }) => hash);
  if (byHash.size === 1) return [];
  const agreed = [...byHash.values()].find((group) => group.length > members / 2) ?? [];
  return hashes.filter((hash) => !agreed.includes(hash)).map(({ number }) => number);
}

/** As the alarm names them, by any member that answers: their endpoints, or their ids where nobody answers under it. */
export function corruptMembers(members: readonly MemberStatus[]): readonly string[] {
  const ids = new Set(members.flatMap(({ corrupt }) => corrupt));
  return [...ids].map(
    (id) => members.find((member) => member.id === id)?.endpoint ?? `member ${BigInt(id).toString(16)}`,
  );
}
