/**
 * Who may have what, and when: the questions that a new request and the head of a queue are asked alike. Both ask here, so
 * that they cannot drift apart. Nothing here changes anything.
 */
import type { Mode, NamespaceConfig } from '../api/config.ts';
import type { Acquire, HolderView, Identity, RefusalCode } from '../api/entry.ts';
import type { Hold, Lock, Session, State } from './state.ts';

export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
  readonly field?: string;
  readonly limit?: number;
  readonly holder?: HolderView | null;
  readonly waiters?: number;
  readonly lockDelayMs?: number;
}

const STAR = 0x2a;

export function isAlive(session: Session): boolean {
  return session.ending === null;
}

/** Whether this identity may be granted anything; a null list means that identities are not checked. */
export function isConsumer(config: NamespaceConfig, identity: Identity): boolean {
  if (config.consumers === null) return true;
  return config.consumers.some(({ namespace, serviceAccounts }) =>
    serviceAccounts === null
      ? identity.account.startsWith(`${namespace}/`)
      : serviceAccounts.some((account) => identity.account === `${namespace}/${account}`),
  );
}

/** A live session that the configuration in force would not let in. */
export function isForeign(state: State, session: Session): boolean {
  return isAlive(session) && (state.config === null || !isConsumer(state.config, session.identity));
}

/** How many permits the first matching pattern gives to a name; null = it is no semaphore (rule C2). */
export function permitsOf(config: NamespaceConfig | null, name: string): number | null {
  if (config === null) return null;
  for (const { pattern, permits } of config.semaphores) if (matches(pattern, name)) return permits;
  return null;
}

/** Both texts are well-formed, so a prefix in UTF-16 units is one in bytes. */
/** A star anywhere else is a character like any other: none is taken into force any more, and a log may hold one. */
function matches(pattern: string, name: string): boolean {
  const last = pattern.length - 1;
  return pattern.charCodeAt(last) === STAR ? name.startsWith(pattern.slice(0, last)) : name === pattern;
}

/** Whether the configuration in force allows this request at all, for a name that may be held by others. */
export function policyRefusal(
  config: NamespaceConfig | null,
  session: Session,
  request: Acquire,
): Refusal | null {
  if (config === null) return { code: 'NAMESPACE_NOT_FOUND', message: 'the namespace has been removed' };
  if (!isConsumer(config, session.identity)) {
    return { code: 'FORBIDDEN', message: `${session.identity.account} is not a consumer of this namespace` };
  }
  const { mode } = request;
  if (!config.modes.includes(mode)) return wrongMode(notAllowed(mode));
  const permits = permitsOf(config, request.name);
  if (permits === null) {
    return mode === 'semaphore' ? wrongMode(UNDECLARED) : null;
  }
  if (mode !== 'semaphore') return wrongMode(DECLARED);
  return request.permits <= permits ? null : tooManyPermits(permits);
}

const UNDECLARED =
  'no semaphore is declared for this name: add a pattern to spec.semaphores of the LockNamespace, or ask for another mode';
const DECLARED = 'this name is declared as a semaphore: ask with mode semaphore (CLI: --permits 1)';

function notAllowed(mode: Mode): string {
  const kind = `${mode.charAt(0).toUpperCase()}${mode.slice(1)}`;
  return `this namespace does not allow ${mode} locks: add ${kind} to spec.modes of the LockNamespace`;
}

function tooManyPermits(permits: number): Refusal {
  const message = `the semaphore has ${permits} ${permits === 1 ? 'permit' : 'permits'}: ask for no more at a time`;
  return { code: 'INVALID', field: 'permits', message, limit: permits };
}

function wrongMode(message: string): Refusal {
  return { code: 'INVALID', field: 'mode', message };
}

/** Whether a request that is allowed can be granted beside what the lock has now, its queue aside (rule C2). */
export function fitsNow(config: NamespaceConfig, lock: Lock, request: Acquire): boolean {
  if (lock.delay !== null || lock.quarantined) return false;
  if (lock.hold === null) return true;
  if (lock.crowd === null || lock.hold.record.request.mode !== request.mode) return false;
  if (request.mode === 'shared') return true;
  return lock.crowd.used + request.permits <= (permitsOf(config, lock.name) ?? 0);
}

/** The hold that a request joins; null = none (rule C6). At most one is joinable, for a second like it would have joined it. */
export function holdToJoin(session: Session, request: Acquire): Hold | null {
  if (!request.reentrant || session.joinable === null) return null;
  return session.joinable.get(joinKey(request)) ?? null;
}

/** Equal for requests that may share a hold. */
export function joinKey({ name, mode, permits, owner }: Acquire): string {
  return `${mode} ${permits} ${owner.length} ${owner}${name}`;
}
