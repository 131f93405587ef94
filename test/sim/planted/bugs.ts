/**
 * Bugs that are planted to see whether the simulator finds them: each breaks one rule by changing a few characters of the
 * shipped source while it is loaded (mutate.ts), in a process of its own. The shipped code has no switch for any of it.
 * When a change no longer applies because the code has moved on, the bug says so and wants a new place.
 */
import type { PlantedBug } from './bug.ts';
import { CORE_BUGS } from './core-bugs.ts';
import { GROUP_BUGS } from './group-bugs.ts';
import { LOCK_BUGS, withSleepyMachines } from './lock-bugs.ts';

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'keepalives are acknowledged at once',
    rule: 'S1',
    file: 'src/server/leader/reception.ts',
    from: 'this.#publisher.keepalive(from, keepalive, nowMs);',
    to: `{
        this.#publisher.keepalive(from, keepalive, nowMs);
        const { state, position } = this.#leader;
        const batch = { commands: [], from: [], ids: [], reads: [] };
        const applied = { events: [], results: [] };
        const keepalives = this.#publisher.takeKeepalives();
        this.#publisher.publish(state, { position, batch, applied, keepalives }, nowMs);
      }`,
    faults: ['serverUsurped'],
  },
  {
    name: 'answers are published before their commit',
    rule: 'S1',
    file: 'src/server/leader/entry-loop.ts',
    from: 'const { outcome, bytes } = await this.#appender.append(entry);',
    to: `this.#parts.publisher.publish(this.#state, { position: this.position, batch, applied, keepalives: [] }, this.#nowMs());
    const { outcome, bytes } = await this.#appender.append(entry);`,
    faults: ['serverCrash'],
  },
  {
    name: 'an answer is matched to a later keepalive',
    rule: 'S2',
    file: 'src/sidecar/keepalives.ts',
    from: 'const sent = this.#sent.get(number);',
    to: 'const sent = [...this.#sent.values()].at(-1);',
    change: (plan) => ({
      ...plan,
      logLatencyMs: { from: 800, to: 4_000 },
      config: { ...plan.config, ttlMs: 5_000 },
      habits: { ...plan.habits, holdMs: 60_000, waitMs: [60_000] },
    }),
  },
  {
    name: 'the remaining TTL instead of a full one after a restart',
    rule: 'S5',
    file: 'src/server/leader/publisher.ts',
    from: 'this.leases.add(id, ttlMs, nowMs)',
    to: 'this.leases.add(id, ttlMs, nowMs - ttlMs / 2)',
    faults: ['serverCrash', 'linkCut'],
  },
  {
    name: 'sessions expire before the sockets are read',
    rule: 'S6',
    file: 'src/server/leader/leases.ts',
    from: 'if (nowMs < expiresAtMs || nowMs < this.#graceFromMs + ttlMs / 3) continue;',
    to: 'if (nowMs < expiresAtMs) continue;',
    change: (plan) => ({ ...plan, faults: new Map([['serverPause', 60_000]]) }),
  },
  {
    name: 'sessions expire too early',
    rule: 'promise 4',
    file: 'src/server/leader/leases.ts',
    from: 'if (lease?.isCondemned === false) lease.expiresAtMs = nowMs + lease.ttlMs;',
    to: 'if (lease?.isCondemned === false) lease.expiresAtMs = nowMs + lease.ttlMs * 0.6;',
    faults: ['linkStall', 'sidecarPause'],
  },
  {
    name: 'sessions expire too late',
    rule: 'promise 4',
    file: 'src/server/leader/leases.ts',
    from: 'if (lease?.isCondemned === false) lease.expiresAtMs = nowMs + lease.ttlMs;',
    to: 'if (lease?.isCondemned === false) lease.expiresAtMs = nowMs + lease.ttlMs * 1.5;',
    faults: ['sidecarCrash', 'linkCut'],
  },
  {
    name: 'an append of unknown outcome counts as committed',
    rule: 'L2',
    file: 'src/server/leader/appender.ts',
    from: 'if (!(error instanceof LogUnavailableError) || this.#hasGivenUp) throw error;',
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
    file: 'src/api/lease.ts',
    from: 'return Math.max(MARGIN_MS_MIN, ttlMs / 5);',
    to: 'return 0;',
    faults: ['linkCut', 'linkCutSilently', 'linkStall'],
    change: (plan) => ({
      ...plan,
      rateSpread: 0.01,
      config: { ...plan.config, lockDelayMs: 0 },
      habits: { ...plan.habits, holdMs: 20_000, waitMs: [60_000], thinkMs: 1_000 },
    }),
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
    from: 'return this.#clock.wallMs() - wallMs > this.#clock.monotonicMs() - monotonicMs + suspendMs(this.#ttlMs);',
    to: 'return wallMs < 0 && monotonicMs < 0;',
    change: withSleepyMachines,
  },
  {
    name: 'renewed for an application that is silent',
    rule: 'A3',
    file: 'src/sidecar/envelope.ts',
    from: 'const silentMs = now - this.#silentSinceMs(now);',
    to: 'const silentMs = (now - this.#silentSinceMs(now)) / 1_000;',
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
    from: "granted: (grant, hold) => store.put({ type: 'grant', ...record(grant, hold) }),",
    to: 'granted: () => undefined,',
  },
  {
    name: 'what was under way is not sent again after a reconnect',
    rule: 'A5',
    file: 'src/sidecar/group-session.ts',
    from: "if (this.#phase === 'live') this.#phase = 'attaching';",
    to: `if (this.#phase === 'live') {
      this.#phase = 'attaching';
      this.#requests.takeAll();
    }`,
    faults: ['linkCut', 'serverCrash'],
  },
  {
    name: 'the last caller hangs up and nothing is cancelled',
    rule: 'A5',
    file: 'src/sidecar/acquires.ts',
    from: '    if (attempt.isWanted) return;\n',
    to: '    if (attempt.isWanted || attempt.request === undefined) return;\n',
    change: (plan) => ({ ...plan, habits: { ...plan.habits, hangsUp: 0.3, waitMs: [60_000] } }),
  },
  {
    name: 'a revoke that only a listing names does not count',
    rule: 'C9',
    file: 'src/sidecar/group-session.ts',
    from: 'if (revoking !== null) this.#owner.revoking(token, revoking);',
    to: ';',
    faults: ['breakLock', 'linkCut', 'linkStall'],
    change: (plan) => ({
      ...plan,
      config: { ...plan.config, lockDelayMs: 0 },
      habits: { ...plan.habits, holdMs: 60_000, waitMs: [60_000] },
    }),
  },
  {
    name: 'a wait is limited only while it is known to be one',
    rule: 'case B07',
    file: 'src/sidecar/acquires.ts',
    from: '      attempt.keep(timers.after(Math.max(waitMs + WAIT_GRACE_MS, answerMs), tooLong));\n',
    to: '',
    change: (plan) => ({
      ...plan,
      logLatencyMs: { from: 900, to: 1_500 },
      habits: { ...plan.habits, waitMs: [100], holdMs: 20_000 },
    }),
  },
  {
    name: 'a cancelled acquire is sent again',
    rule: 'A5',
    file: 'src/sidecar/acquires.ts',
    from: '    attempt.takeBack();\n    this.#attempts.set(attempt.key, attempt);',
    to: '    attempt.leave();\n    this.#attempts.set(attempt.key, attempt);',
    faults: ['linkCut', 'linkCutSilently', 'serverCrash'],
    change: (plan) => ({
      ...plan,
      networkDelayMs: { from: 20, to: 80 },
      habits: { ...plan.habits, hangsUp: 0.5, waitMs: [0], thinkMs: 100 },
    }),
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
    change: (plan) => ({ ...plan, aliases: ['blue', 'green'], sidecars: 3, isOneProcess: false }),
  },
  {
    name: 'the resource does not look at the token',
    rule: 'promise 6',
    file: 'test/sim/nodes/fenced-resource.ts',
    from: 'return token < (this.#highest.get(name) ?? 0);',
    to: 'return token < 0 && this.#highest.has(name);',
    change: (plan) => ({
      ...plan,
      isOneProcess: false,
      sidecars: 3,
      names: 1,
      faults: new Map([['appFreeze', 3_000]]),
      config: { ...plan.config, ttlMs: 5_000, lockDelayMs: 0, maxHoldMs: 86_400_000 },
      habits: { ...plan.habits, thinkMs: 1_000, holdMs: 20_000, waitMs: [60_000], keepaliveShare: 0.2 },
    }),
  },
  {
    name: 'a waiter overtakes another',
    rule: 'promise 3',
    file: 'src/core/queue.ts',
    from: 'lock.queue.add(wait);',
    to: 'lock.queue = new Set([wait, ...lock.queue]);',
  },
  {
    name: 'no lock-delay after an unclean end',
    rule: 'C8',
    file: 'src/core/ends.ts',
    from: 'const delayMs = clean || state.config === null ? 0 : state.config.lockDelayMs;',
    to: 'const delayMs = clean || state.config === null ? 0 : 0 * state.config.lockDelayMs;',
    faults: ['appCrash', 'sidecarCrash'],
  },
  {
    name: 'an old attach is accepted after a newer one',
    rule: 'S3',
    file: 'src/core/sessions.ts',
    from: 'if (command.attach <= session.attach) {',
    to: 'if (command.attach < 0) {',
    change: (plan) => ({
      ...plan,
      aliases: ['blue'],
      isOneProcess: false,
      sidecars: 3,
      faults: new Map([
        ['linkStall', 3_000],
        ['linkCutSilently', 4_000],
        ['linkCut', 4_000],
        ['sidecarPause', 6_000],
      ]),
      config: { ...plan.config, ttlMs: 5_000 },
    }),
  },
  {
    name: 'a snapshot forgets the end of a lock-delay',
    rule: 'L3',
    file: 'src/core/snapshot.ts',
    from: 'delay === null ? null : [delay.due, delay.sequence]',
    to: 'delay === null ? delay : null',
    faults: ['serverCrash', 'appCrash', 'sidecarCrash'],
    change: (plan) => ({
      ...plan,
      snapshotDueBytes: 2_000,
      config: { ...plan.config, lockDelayMs: 5_000 },
    }),
  },
  {
    name: 'a look at a lock promises more than the last sign of life',
    rule: 'A3',
    file: 'src/sidecar/sidecar.ts',
    from: 'Math.min(held.deadlineMs, envelope.silentUntilMs(session))',
    to: 'held.deadlineMs',
    change: (plan) => ({ ...plan, habits: { ...plan.habits, keepaliveShare: 0.7, holdMs: 60_000 } }),
  },
  {
    name: 'a grant under a revoke comes back after a sleep of the machine',
    rule: 'A2',
    commit: 'ca0d092',
    file: 'src/sidecar/namespace-session.ts',
    from: `for (const { token, revoke } of this.#grants.revoking())
      if (afterSuspend || revoke?.lease.isSuspected === true) this.revoked(token);`,
    to: '',
    also: {
      file: 'src/sidecar/lease-clock.ts',
      from: 'frozen.#since = this.#since;',
      to: 'frozen.#since = { ...this.#since, wallMs: Number.POSITIVE_INFINITY };',
    },
    faults: ['breakLock', 'machineSleep'],
    change: (plan) => ({
      ...plan,
      isOneProcess: false,
      names: 1,
      config: { ...plan.config, lockDelayMs: 0 },
      habits: { ...plan.habits, holdMs: 60_000, waitMs: [60_000], thinkMs: 100 },
    }),
  },
  {
    name: 'the end of a session is told when the group has said who has the lock',
    rule: 'case B07',
    commit: '278ab09',
    file: 'src/sidecar/explanations.ts',
    from: 'notHeldError(target, name, token, EXPLAIN_MS_MAX)',
    to: 'notHeldError(target, name, token)',
    faults: ['logOutage', 'linkCutSilently', 'machineSleep'],
    change: (plan) => ({ ...plan, habits: { ...plan.habits, oneLock: 0.6, holdMs: 60_000 } }),
  },
  ...LOCK_BUGS,
  ...CORE_BUGS,
  ...GROUP_BUGS,
];
