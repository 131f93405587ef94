/** etcd as its operator sees it, over its JSON gateway: members, leader, maintenance, leases, figures. */

const CALL_MS_MAX = 5_000;

interface MemberView {
  readonly id: string;
  readonly name: string;
  readonly isLearner: boolean;
  readonly peerUrls: readonly string[];
}

export interface EtcdFigures {
  readonly goroutines: number;
  /** Streams that clients have open: begun and not handled. */
  readonly streams: number;
  readonly leases: number;
}

export class EtcdAdmin {
  readonly #url: string;

  /** Of one member. */
  constructor(clientUrl: string) {
    this.#url = clientUrl;
  }

  async members(): Promise<MemberView[]> {
    const { members } = (await this.#post('cluster/member/list', {})) as {
      members: { ID: string; name?: string; isLearner?: boolean; peerURLs: string[] }[];
    };
    return members.map(({ ID, name = '', isLearner = false, peerURLs }) => ({
      id: ID,
      name,
      isLearner,
      peerUrls: peerURLs,
    }));
  }

  /** Id of the one that leads, and of this one. */
  async status(): Promise<{ readonly leader: string; readonly own: string; readonly revision: string }> {
    const answer = (await this.#post('maintenance/status', {})) as {
      leader: string;
      header: { member_id: string; revision: string };
    };
    return { leader: answer.leader, own: answer.header.member_id, revision: answer.header.revision };
  }

  async remove(id: string): Promise<void> {
    await this.#post('cluster/member/remove', { ID: id });
  }

  /** Returns its new id. */
  async addLearner(peerUrl: string): Promise<string> {
    const answer = (await this.#post('cluster/member/add', { peerURLs: [peerUrl], isLearner: true })) as {
      member: { ID: string };
    };
    return answer.member.ID;
  }

  async promote(id: string): Promise<void> {
    await this.#post('cluster/member/promote', { ID: id });
  }

  /** Only the leader does it. */
  async moveLeader(to: string): Promise<void> {
    await this.#post('maintenance/transfer-leadership', { targetID: to });
  }

  async defragment(): Promise<void> {
    await this.#post('maintenance/defragment', {});
  }

  async compact(revision: string): Promise<void> {
    await this.#post('kv/compaction', { revision });
  }

  async put(key: string, value: string): Promise<void> {
    await this.#post('kv/put', { key: btoa(key), value: btoa(value) });
  }

  /** Clears all alarms, whoever raised them. */
  async disarm(): Promise<void> {
    const { alarms = [] } = (await this.#post('maintenance/alarm', { action: 'GET' })) as {
      alarms?: { memberID: string; alarm: string }[];
    };
    for (const { memberID, alarm } of alarms) {
      await this.#post('maintenance/alarm', { action: 'DEACTIVATE', memberID, alarm });
    }
  }

  /** Raises it for this member, as etcd does when its own check finds other data there. */
  async raiseCorrupt(): Promise<void> {
    const { own: memberID } = await this.status();
    await this.#post('maintenance/alarm', { action: 'ACTIVATE', memberID, alarm: 'CORRUPT' });
  }

  async figures(): Promise<EtcdFigures> {
    const response = await fetch(`${this.#url}/metrics`, { signal: AbortSignal.timeout(CALL_MS_MAX) });
    const text = await response.text();
    const { leases = [] } = (await this.#post('lease/leases', {})) as { leases?: unknown[] };
    const started = sum(text, 'grpc_server_started_total', 'grpc_type="bidi_stream"');
    const handled = sum(text, 'grpc_server_handled_total', 'grpc_type="bidi_stream"');
    return { goroutines: sum(text, 'go_goroutines'), streams: started - handled, leases: leases.length };
  }

  async #post(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.#url}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_MS_MAX),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`etcd refused ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }
}

/** Of the samples of a metric whose labels hold this text. */
function sum(text: string, metric: string, label = ''): number {
  const lines = text
    .split('\n')
    .filter((line) => new RegExp(`^${metric}[ {]`).test(line) && line.includes(label));
  return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
