/**
 * Rule A3: an application that gives no sign of life costs one TTL, not two: by then its sidecar has given its locks back.
 * And nothing is renewed for an application that must show itself by a stream and has not.
 */
import type { SessionId } from '../../../src/api/entry.ts';
import type { Group } from '../nodes/group.ts';
import { silentSinceUs } from '../nodes/localhost.ts';
import type { SidecarNode } from '../nodes/sidecar-node.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { FaultsSeen } from './faults-seen.ts';
import type { Findings } from './findings.ts';

/** For the close to travel and be committed, and for clocks that run at other rates. */
const LATE_MS = 1_500;

export class SilenceWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #faultsSeen: FaultsSeen;

  constructor(world: World, findings: Findings, faultsSeen: FaultsSeen) {
    this.#world = world;
    this.#findings = findings;
    this.#faultsSeen = faultsSeen;
  }

  look(node: SidecarNode, groups: readonly Group[]): void {
    for (const [id, signs] of node.http.localhost.signs) {
      const envelope = node.store.envelopes.get(id);
      if (envelope === undefined) continue;
      const sinceUs = silentSinceUs(envelope.keepalive, signs, this.#world.nowUs);
      // Whatever its TTL: most have just shown themselves.
      if (this.#world.nowUs <= sinceUs + LATE_MS * US_PER_MS) continue;
      const isTooLong = ({ alias }: Group): boolean => this.#isTooLong(node, alias, id, sinceUs);
      if (!groups.some(isTooLong)) continue;
      const isLeft =
        groups.filter((group) => !isTooLong(group) || this.#isHeldUp(node, group, id, sinceUs)).length > 0;
      if (!isLeft && !node.store.isOpen(id)) node.http.localhost.signs.delete(id);
    }
  }

  /** Why a session must not be renewed by this sidecar now; null: it may. */
  renewalProblem(node: SidecarNode, alias: string, session: SessionId): string | null {
    const id = node.store.envelopeOf(alias, session);
    const envelope = id === undefined ? undefined : node.store.envelopes.get(id);
    const signs = id === undefined ? undefined : node.http.localhost.signs.get(id);
    if (envelope === undefined || signs === undefined) return null;
    if (signs.isUnseen && envelope.keepalive !== 'app' && node.wasRestored(alias, session))
      return 'its stream is missing since the restart';
    const sinceUs = silentSinceUs(envelope.keepalive, signs, this.#world.nowUs);
    return this.#isTooLong(node, alias, id ?? '', sinceUs) && this.#faultsSeen.isClear([node.part], sinceUs)
      ? `its application (${envelope.keepalive}) has been silent since ${sinceUs / US_PER_MS}: ${JSON.stringify(signs)}`
      : null;
  }

  /** Each namespace of a session has a TTL of its own (rule A6). */
  #isTooLong(node: SidecarNode, alias: string, id: string, sinceUs: number): boolean {
    const boundUs = (node.store.silenceMsMax(alias, id) * 1.01 + LATE_MS) * US_PER_MS;
    return this.#world.nowUs > sinceUs + boundUs;
  }

  /** Whether locks are still held or waited for in this group; a finding if nothing explains it. */
  #isHeldUp(node: SidecarNode, group: Group, id: string, sinceUs: number): boolean {
    const session = node.store.groupSession(group.alias, id);
    const state = session === undefined ? undefined : group.judge.state.sessions.get(session);
    if (state === undefined || state.holds.size + state.waits.size === 0) return false;
    // It was of the lineage before, and its sidecar has not heard of the end of that: the number is another's by now (rule S10).
    if (state.client !== node.store.envelopes.get(id)?.client) return false;
    // Somebody else has it as well, and may have it alone (rule S3).
    if (group.judge.attaches.isCopied(state.id)) return true;
    // Closing it has made the state machine throw: it ends one TTL later (rule C13).
    if (group.poison.culprits.has(state.id)) return true;
    // A hold on a quarantined name is left aside until the name is given free again (rule C13), even if its session ends.
    const holds = [...state.holds.values()].filter(({ lock }) => state.ending === null || !lock.quarantined);
    if (holds.length + state.waits.size === 0) return true;
    const parts = [node.part, node.linkPart(group.alias), ...group.parts];
    if (!this.#faultsSeen.isClear(parts, sinceUs)) return true;
    const silentMs = Math.round((this.#world.nowUs - sinceUs) / US_PER_MS);
    const message = `${group.alias}: the application of session ${session} was silent for ${silentMs} ms; it still has ${holds.length} locks and ${state.waits.size} waits`;
    this.#findings.add('rule A3', message);
    return true;
  }
}
