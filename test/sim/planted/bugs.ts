/**
 * Bugs that are planted to see whether the simulator finds them: each breaks one rule by changing a few characters of the
 * shipped source while it is loaded (mutate.ts), in a process of its own. The shipped code has no switch for any of it.
 * When a change no longer applies because the code has moved on, the bug says so and wants a new place.
 */
import type { FaultKind } from '../plan.ts';

export interface PlantedBug {
  readonly name: string;
  /** Rule or case that it breaks. */
  readonly rule: string;
  /** Below the root of the repository. */
  readonly file: string;
  /** Must be in the file exactly once. */
  readonly from: string;
  readonly to: string;
  /** Faults without which it cannot show; they are added to what a seed chooses. */
  readonly faults?: readonly FaultKind[];
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'keepalives are acknowledged at once',
    rule: 'S1',
    file: 'src/server/leader.ts',
    from: 'this.#publisher.keepalive(from, keepalive, now);',
    to: `{
        this.#publisher.keepalive(from, keepalive, now);
        const batch = { commands: [], from: [], ids: [], reads: [] };
        const applied = { events: [], results: [] };
        const keepalives = this.#publisher.takeKeepalives();
        this.#publisher.publish(this.#state, { position: this.position, batch, applied, keepalives }, now);
      }`,
    faults: ['serverUsurped'],
  },
  {
    name: 'answers are published before their commit',
    rule: 'S1',
    file: 'src/server/leader.ts',
    from: 'const { outcome, bytes } = await this.#appender.append(entry);',
    to: `this.#publisher.publish(this.#state, { position: this.position, batch, applied, keepalives: [] }, this.#nowMs());
    const { outcome, bytes } = await this.#appender.append(entry);`,
    faults: ['serverCrash'],
  },
  {
    name: 'an answer is matched to a later keepalive',
    rule: 'S2',
    file: 'src/sidecar/group-client.ts',
    from: 'const sent = this.#keepalivesSent.get(number);',
    to: 'const sent = [...this.#keepalivesSent.values()].at(-1);',
    faults: ['linkStall', 'linkCutSilently', 'sidecarPause'],
  },
  {
    name: 'the remaining TTL instead of a full one after a restart',
    rule: 'S5',
    file: 'src/server/publisher.ts',
    from: 'this.leases.add(id, ttlMs, nowMs)',
    to: 'this.leases.add(id, ttlMs, nowMs - ttlMs / 2)',
    faults: ['serverCrash', 'linkCut'],
  },
  {
    name: 'sessions expire before the sockets are read',
    rule: 'S6',
    file: 'src/server/leases.ts',
    from: 'if (nowMs >= expiresAtMs && nowMs >= this.#graceFromMs + ttlMs / 3)',
    to: 'if (nowMs >= expiresAtMs)',
    faults: ['serverPause'],
  },
  {
    name: 'sessions expire too early',
    rule: 'promise 4',
    file: 'src/server/leases.ts',
    from: 'if (lease !== undefined) lease.expiresAtMs = nowMs + lease.ttlMs;',
    to: 'if (lease !== undefined) lease.expiresAtMs = nowMs + lease.ttlMs * 0.6;',
    faults: ['linkStall', 'sidecarPause'],
  },
  {
    name: 'sessions expire too late',
    rule: 'promise 4',
    file: 'src/server/leases.ts',
    from: 'if (lease !== undefined) lease.expiresAtMs = nowMs + lease.ttlMs;',
    to: 'if (lease !== undefined) lease.expiresAtMs = nowMs + lease.ttlMs * 1.5;',
    faults: ['sidecarCrash', 'linkCut'],
  },
  {
    name: 'an append of unknown outcome counts as committed',
    rule: 'L2',
    file: 'src/server/appender.ts',
    from: 'if (!(error instanceof LogUnavailableError)) throw error;',
    to: "if (error instanceof LogUnavailableError) return 'committed';\n        throw error;",
    faults: ['logOutage'],
  },
  {
    name: 'the deadline counts from the reply',
    rule: 'A1',
    file: 'src/sidecar/group-session.ts',
    from: `    this.#acknowledge(sent);
    this.#compare(status);`,
    to: `    this.#acknowledge(momentOf(this.#client.runtime.clock));
    this.#compare(status);`,
    faults: ['linkStall', 'sidecarPause'],
  },
  {
    name: 'no margin for clocks that run apart',
    rule: 'A1',
    file: 'src/sidecar/lease-clock.ts',
    from: 'return Math.max(MARGIN_MS_MIN, ttlMs / 5);',
    to: 'return 0;',
    faults: ['linkCut', 'linkCutSilently', 'linkStall'],
  },
  {
    name: 'held after a restart without asking the group',
    rule: 'A4',
    file: 'src/sidecar/lease-clock.ts',
    from: 'return this.#isAcknowledged ? this.giveUpAtMs : this.#since.monotonicMs;',
    to: 'return this.giveUpAtMs;',
    faults: ['sidecarCrash'],
  },
  {
    name: 'the sleep of the machine is not noticed',
    rule: 'A2',
    file: 'src/sidecar/lease-clock.ts',
    from: 'return this.#clock.wallMs() - wallMs > this.#clock.monotonicMs() - monotonicMs + SUSPEND_MS;',
    to: 'return wallMs < 0 && monotonicMs < 0;',
    faults: ['machineSleep'],
  },
  {
    name: 'renewed for an application that is silent',
    rule: 'A3',
    file: 'src/sidecar/envelope.ts',
    from: 'if (silentMs >= ttlMs) {',
    to: 'if (silentMs >= 1_000 * ttlMs) {',
    faults: ['appCrash', 'appFreeze'],
  },
  {
    name: 'renewed after a restart though the stream is missing',
    rule: 'A3',
    file: 'src/sidecar/envelopes.ts',
    from: "dormant: keepalive !== 'app'",
    to: "dormant: keepalive === 'stream' && keepalive !== 'stream'",
    faults: ['sidecarCrash', 'appCrash'],
  },
  {
    name: 'grants are not written before they are told',
    rule: 'A4',
    file: 'src/sidecar/namespace-listener.ts',
    from: "granted: (grant) => store.put({ type: 'grant', ...record(grant) }),",
    to: 'granted: () => undefined,',
  },
  {
    name: 'a cancel is sent once and then forgotten',
    rule: 'A5',
    file: 'src/sidecar/acquires.ts',
    from: `        isPersistent: true,
        isFirst,`,
    to: '        isFirst,',
    faults: ['serverCrash', 'linkCut', 'linkCutSilently'],
  },
  {
    name: 'the last caller hangs up and nothing is cancelled',
    rule: 'A5',
    file: 'src/sidecar/acquires.ts',
    from: '    if (attempt.isWanted) return;\n',
    to: '    if (attempt.isWanted || attempt.request === undefined) return;\n',
  },
  {
    name: 'a cancelled acquire is sent again',
    rule: 'A5',
    file: 'src/sidecar/acquires.ts',
    from: '    attempt.withdraw();\n',
    to: '',
    faults: ['linkCut', 'linkCutSilently', 'serverCrash'],
  },
  {
    name: 'a revoked grant is still extended',
    rule: 'C9',
    file: 'src/sidecar/namespace-session.ts',
    from: 'return Math.min(this.deadlineMs, grant.frozenDeadlineMs ?? Number.POSITIVE_INFINITY);',
    to: 'return Math.max(this.deadlineMs, grant.frozenDeadlineMs ?? 0);',
    faults: ['breakLock'],
  },
  {
    name: 'a new session is taken for the old one in its place',
    rule: 'case E25',
    file: 'src/sidecar/envelopes.ts',
    from: `        if (isOver) return;
        isOver = true;
        this.#namespaceOver(envelope, alias, reason);`,
    to: '        this.#namespaceOver(envelope, alias, reason);',
    faults: ['linkCut', 'linkCutSilently'],
  },
  {
    name: 'the resource does not look at the token',
    rule: 'promise 6',
    file: 'test/sim/nodes/fenced-resource.ts',
    from: 'return token < (this.#highest.get(name) ?? 0);',
    to: 'return token < 0 && this.#highest.has(name);',
    faults: ['appFreeze'],
  },
  {
    name: 'a waiter overtakes another',
    rule: 'promise 3',
    file: 'src/core/transitions.ts',
    from: 'lock.queue.add(wait);',
    to: 'lock.queue = new Set([wait, ...lock.queue]);',
  },
  {
    name: 'granted to a session that is ending',
    rule: 'C3',
    file: 'src/core/transitions.ts',
    from: "if (!isAlive(session)) return 'SESSION_EXPIRED';",
    to: '',
    faults: ['appCrash'],
  },
  {
    name: 'a wait that is over is granted',
    rule: 'C3',
    file: 'src/core/transitions.ts',
    from: "if (wait.due <= state.at) return 'WAIT_TIMEOUT';",
    to: '',
    faults: ['serverPause', 'serverCrash'],
  },
  {
    name: 'the log does not compare the leader',
    rule: 'L1',
    file: 'src/log/rules.ts',
    from: "if (!leads(state, leadership)) return 'deposed';",
    to: '',
    faults: ['serverUsurped'],
  },
];
