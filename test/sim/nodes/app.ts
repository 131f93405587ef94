/** An application as its workers see it. */
import type { Random } from '../../support/random.ts';
import type { Findings } from '../judge/findings.ts';
import type { Plan } from '../plan.ts';
import type { VirtualProcess } from '../world/process.ts';
import type { AppGrant, AppShare } from './app-grant.ts';
import type { AppSession, SessionKeeper } from './app-session.ts';
import type { FencedResource } from './fenced-resource.ts';
import type { Group } from './group.ts';
import type { SidecarNode } from './sidecar-node.ts';

export interface ApplicationOptions {
  readonly process: VirtualProcess;
  readonly sidecar: SidecarNode;
  readonly groups: ReadonlyMap<string, Group>;
  readonly resource: FencedResource;
  readonly findings: Findings;
  readonly plan: Plan;
  readonly random: Random;
}

export interface App extends SessionKeeper {
  readonly options: ApplicationOptions;
  readonly process: VirtualProcess;
  readonly random: Random;
  readonly sessions: ReadonlySet<AppSession>;
  /** By `grantId`. */
  readonly grants: ReadonlyMap<string, AppGrant>;
  readonly isLeaving: boolean;
  /** A new retry key. */
  nextRequest(): string;
  /** Runs something that must be over before the application counts as idle. */
  alongside(work: () => Promise<void>): void;
  /** A session to lock in; null when none could be opened. */
  usableSession(): Promise<AppSession | null>;
  /** Deletes one of its sessions, with all that is held in it. */
  closeSession(): Promise<void>;
  /** The answer to the acquire of a grant that it does not have has arrived. */
  arrived(share: AppShare): void;
  /** It is about to give it back. */
  givesBack(share: AppShare): void;
  gaveBack(share: AppShare): void;
  /** Whether what this `request` has of the grant was given back before, or is on its way. */
  hasGivenBack(grant: AppGrant, request: string | undefined): boolean;
}
