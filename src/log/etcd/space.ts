/**
 * Space in etcd (rule L5). Its quota counts the backend file, free pages included, and what is deleted stays in the file: compaction turns
 * it into free pages, which later writes use; only defragmentation makes the file smaller. Both sizes therefore count: what is
 * used says whether the group is full, the file whether etcd is about to refuse writes.
 */
import { LogUnavailableError } from '../errors.ts';
import type { LogSpace } from '../port.ts';
import type { EtcdClient, MemberStatus } from './client.ts';
import { corruptMembers } from './integrity.ts';

/** A file this full ... */
const DEFRAGMENT_FILE_SHARE = 0.8;
/** ... with this share of the quota in free pages is written anew. Free pages may lie too scattered for large values. */
const DEFRAGMENT_FREE_SHARE = 0.25;

export class EtcdSpace {
  readonly #client: EtcdClient;
  readonly #quotaBytes: number;

  constructor(client: EtcdClient, quotaBytes: number) {
    this.#client = client;
    this.#quotaBytes = quotaBytes;
  }

  async space(): Promise<LogSpace | null> {
    const members = await this.#client.statuses();
    if (members.length === 0) return null;
    return {
      quotaBytes: this.#quotaBytes,
      usedBytes: Math.max(...members.map(({ usedBytes }) => usedBytes)),
      fileBytes: Math.max(...members.map(({ fileBytes }) => fileBytes)),
      isFull: members.some(({ isFull }) => isFull),
      answering: members.length,
      corrupt: corruptMembers(members),
    };
  }

  async reclaim(): Promise<void> {
    await this.#client.compact().catch(orCompacted);
    const members = await this.#client.statuses();
    for (const { number } of membersToDefragment(members, this.#quotaBytes)) {
      await this.#client.defragment(number);
    }
    if (members.some(({ isFull }) => isFull)) await this.#client.disarm();
  }
}

/** One after the other, the leader of the members last: the rest goes on committing meanwhile. */
export function membersToDefragment(
  members: readonly MemberStatus[],
  quotaBytes: number,
): readonly MemberStatus[] {
  return members
    .filter(({ fileBytes, usedBytes, isFull }) => {
      const isScattered = fileBytes - usedBytes >= DEFRAGMENT_FREE_SHARE * quotaBytes;
      return isFull ? fileBytes > usedBytes : fileBytes >= DEFRAGMENT_FILE_SHARE * quotaBytes && isScattered;
    })
    .toSorted((a, b) => Number(a.isLeader) - Number(b.isLeader));
}

/** Another replica has compacted up to there: nothing is left to do. */
function orCompacted(error: unknown): void {
  const isDone =
    error instanceof LogUnavailableError &&
    String(error.cause).includes('required revision has been compacted');
  if (!isDone) throw error;
}
