/**
 * Sessions that expire although their applications, their sidecars and all that is needed of their group were well: a client that lives
 * keeps its session (promise 4), whatever becomes of one front end (rule S8), and after a change of leaders until all front ends that came
 * are ready (rule S4).
 */
import type { SessionId } from '../../../src/api/entry.ts';
import { silentSinceUs } from '../nodes/localhost.ts';
import type { SidecarNode } from '../nodes/sidecar-node.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { FaultsSeen } from './faults-seen.ts';
import type { Findings } from './findings.ts';
import type { GroupJudge } from './group-judge.ts';

/** What went wrong so long before the session's last TTL began has been got over. */
const SETTLED_TTLS = 0.5;
const SETTLED_MS = 2_000;

/** The group as clients reach it. */
export interface Reached {
  readonly alias: string;
  readonly part: string;
  readonly judge: GroupJudge;
  /** For each place at which clients connect: the parts without which it serves nobody. */
  readonly endpointParts: readonly (readonly string[])[];
  /** The place that leads; null: nobody does. */
  readonly leaderPlace: number | null;
}

export class ExpiryWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #faultsSeen: FaultsSeen;

  constructor(world: World, findings: Findings, faultsSeen: FaultsSeen) {
    this.#world = world;
    this.#findings = findings;
    this.#faultsSeen = faultsSeen;
  }

  /** The leader has just ended this session for its silence. */
  expired(group: Reached, session: SessionId, nodes: readonly SidecarNode[]): void {
    const { alias, judge, part } = group;
    const node = nodes.find(({ store }) => store.keeps(alias, session));
    const ttlMs = judge.ttlOf(session) ?? 0;
    if (node === undefined || !this.#isWanted(node, alias, session, ttlMs)) return;
    const sinceUs = this.#world.nowUs - (ttlMs * (1 + SETTLED_TTLS) + SETTLED_MS) * US_PER_MS;
    if (judge.tookOverAtUs >= sinceUs || !this.#faultsSeen.isClear([node.part, part], sinceUs)) return;
    const isWell = (place: number): boolean => {
      const parts = [...(group.endpointParts[place] ?? []), node.endpointPart(alias, place)];
      return this.#faultsSeen.isClear(parts, sinceUs);
    };
    const unwell = [...group.endpointParts.keys()].filter((place) => !isWell(place));
    const { leaderPlace } = group;
    if (leaderPlace === null || unwell.length > 1 || unwell.includes(leaderPlace)) return;
    const rule = unwell.length === 0 ? 'promise 4' : 'rule S8';
    const but = unwell.length === 0 ? '' : `, but for place ${unwell[0]}`;
    this.#findings.add(
      rule,
      `${alias}: session ${session} of ${node.name} expired though all was well${but}`,
    );
  }

  /** Its application shows itself, and its sidecar goes on with it. */
  #isWanted(node: SidecarNode, alias: string, session: SessionId, ttlMs: number): boolean {
    const id = node.store.envelopeOf(alias, session);
    const envelope = id === undefined ? undefined : node.store.envelopes.get(id);
    const signs = id === undefined ? undefined : node.http.localhost.signs.get(id);
    if (id === undefined || envelope === undefined || signs === undefined) return false;
    if (!node.store.isOpen(id) || node.sidecar === null || node.process.isPaused) return false;
    if (signs.isUnseen && envelope.keepalive !== 'app') return false;
    const silentUs = this.#world.nowUs - silentSinceUs(envelope.keepalive, signs, this.#world.nowUs);
    return silentUs < (ttlMs / 2) * US_PER_MS;
  }
}
