/** Bugs of groups of several replicas, and in the fences of their log: see bugs.ts. */
import type { FaultKind, Plan } from '../plan.ts';
import type { PlantedBug } from './bug.ts';

/** Three replicas, and these faults alone. */
function group(faults: readonly (readonly [FaultKind, number])[], differs: Partial<Plan> = {}) {
  return (plan: Plan): Plan => ({
    ...plan,
    aliases: ['blue'],
    isOneProcess: false,
    replicas: 3,
    sidecars: 3,
    leaseMs: 2_000,
    logLatencyMs: { from: 0.5, to: 6 },
    networkDelayMs: { from: 0.1, to: 3 },
    unknownOutcomes: 0,
    config: { ...plan.config, ttlMs: 5_000, sessions: 5_000, heldLocks: 1_000, locksPerClient: 100 },
    habits: { ...plan.habits, holdMs: 20_000, waitMs: [20_000], thinkMs: 1_000, keepaliveShare: 0.2 },
    ...differs,
    faults: new Map(faults),
  });
}

export const GROUP_BUGS: readonly PlantedBug[] = [
  {
    name: 'a deposed leader can still append',
    rule: 'L1',
    file: 'src/log/rules.ts',
    from: "if (!leads(state, leadership)) return 'deposed';",
    to: "if (leadership.fence === '') return 'deposed';",
    change: group([
      ['serverPause', 8_000],
      ['logDepose', 8_000],
    ]),
  },
  {
    name: 'another entry is sent under an index that was sent before',
    rule: 'L2',
    file: 'src/server/leader/appender.ts',
    from: "if (outcome === 'committed') this.#head",
    to: "if (outcome === 'committed' && entry.index % 50 !== 0) this.#head",
  },
  {
    name: 'a deposed leader commits its snapshot late',
    rule: 'L3',
    file: 'src/log/memory-store.ts',
    from: "    requireLeader(this.#state(), leadership, 'commit a snapshot');\n",
    to: '',
    change: group([['logDepose', 3_000]], { snapshotDueBytes: 500, logLatencyMs: { from: 20, to: 60 } }),
  },
  {
    name: 'a deposed leader trims the log',
    rule: 'L4',
    file: 'src/log/memory-store.ts',
    from: "    requireLeader(this.#state(), leadership, 'trim the log');\n",
    to: '',
    change: group([['logDepose', 3_000]], { snapshotDueBytes: 500, logLatencyMs: { from: 20, to: 60 } }),
  },
  {
    name: 'one replica computes something else',
    rule: 'C14',
    file: 'src/server/member/standby.ts',
    from: '        const head = { index: stored.index, hash: stored.hash };\n',
    to: '        if (stored.index % 40 === 0) state.lastToken += 1;\n        const head = { index: stored.index, hash: stored.hash };\n',
    change: group([]),
  },
  {
    name: 'a replica that computes something else is not noticed and leads',
    rule: 'C14',
    file: 'src/server/snapshots/recovery.ts',
    from: 'if (state.eventHash !== entry.eventHash) {',
    to: 'if (entry.index % 40 === 0) state.lastToken += 1;\n  if (state.eventHash.length !== entry.eventHash.length) {',
    change: group([['serverCrash', 20_000]]),
  },
  {
    name: 'the behaviour level is raised over the head of a replica',
    rule: 'C15',
    file: 'src/server/leader/behaviour.ts',
    from: 'const level = Math.min(...supported);',
    to: 'const level = Math.max(...supported);',
    change: group([], { olderReplicas: 1, finishesUpgrade: false }),
  },
  {
    name: 'a replica that is away does not hold the behaviour level back',
    rule: 'C15',
    file: 'src/server/leader/behaviour.ts',
    from: 'if (supported.length < replicas) return null;',
    to: 'if (supported.length < Math.min(2, replicas)) return null;',
    change: group(
      [
        ['serverCrash', 5_000],
        ['serverUpgrade', 8_000],
        ['relayCut', 8_000],
      ],
      { olderReplicas: 2, finishesUpgrade: false },
    ),
  },
  {
    name: 'what a program does depends on its own level, not on that of the group',
    rule: 'C15',
    file: 'src/core/admin.ts',
    from: "  events.push({ type: 'configured', version: command.version });\n",
    to: "  if (BEHAVIOUR_LEVEL_MAX > 1) events.push({ type: 'configured', version: command.version });\n",
    faults: ['configChange'],
    change: group([['configChange', 5_000]], { olderReplicas: 1, finishesUpgrade: false }),
  },
  {
    name: 'an older program leads on over the raise',
    rule: 'C15',
    file: 'src/server/snapshots/recovery.ts',
    from: '  if (level > BEHAVIOUR_LEVEL_MAX) throw',
    to: '  if (level > BEHAVIOUR_LEVEL_MAX + 1) throw',
    change: group([
      ['serverDowngrade', 4_000],
      ['serverUpgrade', 8_000],
    ]),
  },
  {
    name: 'sessions expire before all front ends are ready',
    rule: 'S4',
    file: 'src/server/leader/leases.ts',
    from: '      if (this.#reattaching.size > 0 && nowMs < this.#startedMs + 2 * ttlMs) continue;\n',
    to: '',
    change: group(
      [
        ['logDepose', 10_000],
        ['relayStall', 4_000],
        ['appCrash', 5_000],
        ['sidecarCrash', 10_000],
      ],
      { networkDelayMs: { from: 1, to: 80 } },
    ),
  },
  {
    name: 'a standby deposes a leader whose entries it sees',
    rule: 'S7',
    file: 'src/server/member/suspicion.ts',
    from: `if (!isUnheard || silentMs < this.#settings.silenceMs || epochAgeMs < BEGIN_MS) return false;
    return nowMs - this.#lastMs >= this.#pauseMs;`,
    to: `if (!isUnheard || silentMs < -this.#settings.silenceMs || epochAgeMs < BEGIN_MS) return false;
    return nowMs - this.#lastMs >= BEGIN_MS;`,
    change: group([['relayCut', 8_000]]),
  },
  {
    name: 'a standby takes its own standstill for silence of the leader',
    rule: 'S7',
    commit: 'ca18712',
    file: 'src/server/member/standby.ts',
    from: 'return Math.max(0, this.#lookedAtMs - this.#lastEntryMs);',
    to: 'return this.#options.runtime.clock.monotonicMs() - this.#lastEntryMs;',
    change: group([['serverPause', 8_000]]),
  },
  {
    name: 'a sidecar stays with a front end that does not answer',
    rule: 'S8',
    file: 'src/sidecar/group-client.ts',
    from: 'if (dueMs > this.#keepaliveEveryMs) return;',
    to: 'if (dueMs > Number.NEGATIVE_INFINITY) return;',
    change: group([['linkStall', 10_000]]),
  },
  {
    name: 'releases count against the rate limit',
    rule: 'S9',
    file: 'src/server/front-end/admission.ts',
    from: "const isLimited = body.type === 'acquire' ||",
    to: "const isLimited = body.type === 'release' || body.type === 'acquire' ||",
    change: (plan) => ({
      ...plan,
      config: { ...plan.config, operationsPerSecondPerClient: 2, operationsPerSecond: 5 },
      habits: { ...plan.habits, thinkMs: 100, holdMs: 20 },
    }),
  },
  {
    name: 'a restored backup is served on',
    rule: 'S10',
    file: 'src/server/leader/marks.ts',
    from: 'if (found === hash) {',
    to: 'if (found === hash || index > 0) {',
    change: group([], { rollsBack: true }),
  },
  {
    name: 'a group that was rolled back goes on after its halt',
    rule: 'S10',
    file: 'src/log/memory-store.ts',
    from: '    this.#halted ??= proof;\n',
    to: '    if (proof.seen.index < 0) this.#halted ??= proof;\n',
    change: group([], { rollsBack: true }),
  },
  {
    name: 'an acquire is handed on to a new leader though its cancel follows',
    rule: 'C3',
    file: 'src/server/front-end/client-memory.ts',
    from: "if (body.type === 'cancel') cancelled.add(",
    to: "if (body.type === 'cancel') cancelled.delete(",
    commit: '4a59adc',
    change: (plan) => ({
      ...group([
        ['relayStall', 8_000],
        ['serverPause', 12_000],
        ['logDepose', 8_000],
      ])(plan),
      networkDelayMs: { from: 1, to: 80 },
      habits: { ...plan.habits, hangsUp: 0.5, waitMs: [100, 5_000], thinkMs: 100, holdMs: 400 },
    }),
  },
];
