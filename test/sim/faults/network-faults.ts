/** Faults of the network between one sidecar and one group. */
import type { Random } from '../../support/random.ts';
import type { Cluster } from '../cluster.ts';
import type { Link } from '../world/network.ts';
import type { Direction } from '../world/pipe.ts';
import type { FaultMaker } from './fault.ts';

const CUT_MS = [1, 300, 3_000, 12_000, 40_000];
const STALL_MS = [20, 500, 3_000, 10_000, 25_000];

function anyLink(cluster: Cluster, random: Random): { readonly link: Link; readonly parts: string[] } {
  const node = random.pick(cluster.sidecars);
  const { alias } = random.pick(cluster.groups);
  const links = node.links.get(alias) as readonly Link[];
  const link = links.length === 1 ? (links[0] as Link) : random.pick(links);
  return { link, parts: [node.linkPart(alias), node.endpointPart(alias, links.indexOf(link))] };
}

function cut(isSilent: boolean): FaultMaker {
  return (cluster, random) => {
    const { link, parts } = anyLink(cluster, random);
    if (link.isCut) return null;
    link.cut({ silently: isSilent });
    return { parts, forMs: random.pick(CUT_MS), end: () => link.mend() };
  };
}

const linkStall: FaultMaker = (cluster, random) => {
  const { link, parts } = anyLink(cluster, random);
  const wanted: readonly Direction[] = random.pick([
    ['toServer'],
    ['toClient'],
    ['toServer', 'toClient'],
  ] as const);
  const directions = wanted.filter((direction) => !link.isStalled(direction));
  if (directions.length === 0) return null;
  const oldOnly = random.chance(0.4);
  for (const direction of directions) {
    if (oldOnly) link.stallConnected(direction);
    else link.stall(direction);
  }
  return {
    parts,
    forMs: random.pick(STALL_MS),
    end: () => {
      for (const direction of directions) link.unstall(direction);
    },
  };
};

export const networkFaults = {
  linkCut: cut(false),
  linkCutSilently: cut(true),
  linkStall,
} satisfies Record<string, FaultMaker>;
