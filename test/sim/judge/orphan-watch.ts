/**
 * Locks and places in queues that nobody wants any more, of sessions that live: they would block the name for as long as
 * the session lasts (rule A5, cases B02, B03, C10). Each must go within seconds once nothing stands in the way.
 */
import { keysOf } from '../../../src/core/holds.ts';
import type { Group } from '../nodes/group.ts';
import type { SidecarNode } from '../nodes/sidecar-node.ts';
import { US_PER_MS, type World } from '../world/world.ts';
import type { FaultsSeen } from './faults-seen.ts';
import type { Findings } from './findings.ts';

const ORPHANED_MS_MAX = 8_000;

export class OrphanWatch {
  readonly #world: World;
  readonly #findings: Findings;
  readonly #faultsSeen: FaultsSeen;
  readonly #sinceUs = new Map<string, number>();

  constructor(world: World, findings: Findings, faultsSeen: FaultsSeen) {
    this.#world = world;
    this.#findings = findings;
    this.#faultsSeen = faultsSeen;
  }

  look(group: Group, nodes: readonly SidecarNode[]): void {
    const { alias, judge } = group;
    for (const session of judge.state.sessions.values()) {
      if (session.holds.size + session.waits.size === 0) continue;
      const node = nodes.find(({ store }) => store.envelopeOf(alias, session.id) !== undefined);
      const envelope = node?.store.envelopeOf(alias, session.id);
      if (node === undefined || envelope === undefined || session.ending !== null) continue;
      if (!node.store.keeps(alias, session.id) || !isAwake(node, envelope)) continue;
      for (const hold of session.holds.values()) {
        const { token, lock, revoking } = hold;
        for (const { request } of keysOf(hold)) {
          const isKnown =
            revoking !== null ||
            node.store.grantOfKey(alias, envelope, request.key)?.token === token ||
            node.http.isWaitedFor(`${alias}/${lock.name}`, envelope);
          const what = `the lock ${alias}/${lock.name} with token ${token} by key ${request.key}`;
          this.#note(what, isKnown, group, node);
        }
      }
      for (const { lock, record } of session.waits) {
        const isKnown = node.http.isWaitedFor(`${alias}/${lock.name}`, envelope);
        this.#note(`the wait ${record.request.key} for ${alias}/${lock.name}`, isKnown, group, node);
      }
    }
    this.#forgetOld();
  }

  #note(what: string, isKnown: boolean, group: Group, node: SidecarNode): void {
    const { nowUs } = this.#world;
    if (isKnown) {
      this.#sinceUs.delete(what);
      return;
    }
    const sinceUs = this.#sinceUs.get(what) ?? nowUs;
    this.#sinceUs.set(what, sinceUs);
    if (nowUs - sinceUs <= ORPHANED_MS_MAX * US_PER_MS) return;
    const parts = [node.part, node.linkPart(group.alias), ...group.parts];
    if (!this.#faultsSeen.isClear(parts, sinceUs)) this.#sinceUs.set(what, nowUs);
    else this.#findings.add('rule A5', `nobody wants ${what} any more, since ${sinceUs / US_PER_MS}`);
  }

  /** What is gone is not looked at again. */
  #forgetOld(): void {
    const oldestUs = this.#world.nowUs - 100 * ORPHANED_MS_MAX * US_PER_MS;
    for (const [what, sinceUs] of this.#sinceUs) if (sinceUs < oldestUs) this.#sinceUs.delete(what);
  }
}

/** A session that waits for its application's stream ends by its TTL at the latest, as one that its sidecar gave up does. */
function isAwake({ store, http }: SidecarNode, envelope: string): boolean {
  const needsStream = store.envelopes.get(envelope)?.keepalive !== 'app';
  return !needsStream || http.localhost.signs.get(envelope)?.isStreamOpen === true;
}
