/** Bugs in the state machine, one for each rule C that bugs.ts and lock-bugs.ts leave out: see bugs.ts. */
import type { Plan } from '../plan.ts';
import { sliced } from '../plan-sliced.ts';
import type { PlantedBug } from './bug.ts';
import { asking } from './lock-bugs.ts';

/** Short waits and holds at one name, so that waits run out and queues move. */
function crowded(plan: Plan): Plan {
  const config = { ...plan.config, heldLocks: 1_000, locksPerClient: 100, sessions: 5_000, waiters: 50_000 };
  const habits = { ...plan.habits, thinkMs: 1_000, holdMs: 400, waitMs: [100, 5_000], neverReleases: 0 };
  return { ...plan, names: 1, config, habits };
}

/** One consequence an entry. */
function slow(plan: Plan): Plan {
  const crowd = crowded(plan);
  const habits = { ...crowd.habits, holdMs: 20_000, waitMs: [20_000] };
  return sliced({ ...crowd, config: { ...crowd.config, ttlMs: 5_000 }, habits }, 1);
}

/** Two sidecars with one state file, and sessions that the second one renews. */
function copied(plan: Plan): Plan {
  const habits = { ...crowded(plan).habits, keepalives: ['app' as const], holdMs: 20_000, waitMs: [20_000] };
  return { ...crowded(plan), isOneProcess: false, habits, faults: new Map([['stateCopied', 8_000]]) };
}

export const CORE_BUGS: readonly PlantedBug[] = [
  {
    name: 'what an entry leaves over is passed over',
    rule: 'C1',
    file: 'src/core/backlog-steps.ts',
    from: 'if (!workOn(work, item)) break;',
    to: 'if (!workOn(work, item)) continue;',
    change: slow,
  },
  {
    name: 'what an entry leaves over waits for the next beat',
    rule: 'C1',
    file: 'src/server/leader/entry-loop.ts',
    from: 'if (inbox.size > 0 || hasBacklog(this.#state)) this.#planTurn();',
    to: 'if (inbox.size > 0) this.#planTurn();',
    change: slow,
  },
  {
    name: 'a snapshot forgets what an entry leaves over',
    rule: 'C1',
    file: 'src/core/snapshot.ts',
    from: 'for (const item of state.backlog) yield',
    to: 'for (const item of state.backlog.slice(1)) yield',
    faults: ['serverCrash', 'appCrash'],
    change: (plan) => ({ ...slow(plan), snapshotDueBytes: 500 }),
  },
  {
    name: 'timers fire after the commands of their entry',
    rule: 'C1',
    file: 'src/core/apply.ts',
    from: `    this.#timers();
    for (; next < commands.length; next++) {
      this.#command(commands[next] as Command, next);
      this.#backlog();
    }`,
    to: `    for (; next < commands.length; next++) {
      this.#command(commands[next] as Command, next);
      this.#backlog();
    }
    this.#timers();`,
    change: crowded,
  },
  {
    name: 'a waiter is granted what the configuration no longer allows',
    rule: 'C3',
    file: 'src/core/queue.ts',
    from: 'if (refusal !== null) return refusal.code;',
    to: 'if (refusal !== null && config === null) return refusal.code;',
    faults: ['modesChange'],
    change: (plan) => crowded(asking(plan, { modes: ['exclusive', 'shared', 'semaphore'] }, [])),
  },
  {
    name: 'a key whose grant is over is granted again',
    rule: 'C4',
    file: 'src/core/acquire.ts',
    from: 'if (known !== undefined) return repeat(known, command);',
    to: "if (known !== undefined && known.state.kind !== 'ended') return repeat(known, command);",
    faults: ['linkCut', 'serverCrash'],
    change: crowded,
  },
  {
    name: 'the outcome of a refused wait is not kept',
    rule: 'C5',
    file: 'src/core/queue.ts',
    from: "  record.state = { kind: 'ended', by: code, token: 0 };\n",
    to: "  record.state = { kind: 'ended', by: code, token: 0 };\n  if (fromQueue) session.keys.delete(request.key);\n",
    faults: ['linkCut', 'serverCrash'],
    change: crowded,
  },
  {
    name: 'whoever names a lock can release it',
    rule: 'C7',
    file: 'src/core/release.ts',
    from: '  const hold = session.holds.get(token);\n',
    to: '  const hold = session.holds.get(token) ?? state.locks.get(name)?.hold ?? undefined;\n',
    change: (plan) => crowded({ ...plan, habits: { ...plan.habits, wrongRelease: 0.3 } }),
  },
  {
    name: 'commands are taken from any stream, not from the one that attached their session',
    rule: 'C7',
    file: 'src/server/leader/reception.ts',
    from: 'return this.#publisher.isAttached(body.session, from) ? body : { ...body, attach: 0 };',
    to: 'return body;',
    change: (plan) => crowded({ ...plan, isOneProcess: false, rudeEveryMs: 500 }),
  },
  {
    name: 'a keepalive over any stream renews',
    rule: 'C7',
    file: 'src/server/leader/publisher.ts',
    from: 'if (route?.attach === attach && route.to === to)',
    to: 'if (route?.attach === attach)',
    faults: ['appCrash', 'sidecarCrash', 'sidecarPause'],
    change: (plan) => crowded({ ...plan, isOneProcess: false, rudeEveryMs: 200 }),
  },
  {
    name: 'an attach needs no secret',
    rule: 'C7',
    file: 'src/core/sessions.ts',
    from: 'if (command.secretHash !== session.secretHash) {',
    to: "if (command.secretHash === '') {",
    change: (plan) => crowded({ ...plan, isOneProcess: false, rudeEveryMs: 500 }),
  },
  {
    name: 'whoever attached a session before is kept alive with it',
    rule: 'S3',
    file: 'src/core/views.ts',
    from: 'if (session === undefined || !isAlive(session) || session.attach !== attach) return null;',
    to: 'if (session === undefined || !isAlive(session) || session.attach < attach) return null;',
    // Over a stream that has not attached it no session is acknowledged anyway (rule C7).
    also: {
      file: 'src/server/leader/publisher.ts',
      from: 'if (!status.alive || this.#routes.get(session)?.to === to) statuses.push(status);',
      to: 'statuses.push(status);',
    },
    change: copied,
  },
  {
    name: 'a sidecar does not hear that another has its session',
    rule: 'S3',
    file: 'src/sidecar/group-session.ts',
    from: `    if (!status.alive) {
      this.#over(`,
    to: `    if (!status.alive) {
      this.#acknowledge(sent);
      if (sent.monotonicMs < 0) this.#over(`,
    change: copied,
  },
  {
    name: 'the id of a session is used again',
    rule: 'C10',
    file: 'src/core/sessions.ts',
    from: '  const id = ++state.lastSession;\n',
    to: '  const id = Math.max(0, ...state.sessions.keys()) + 1;\n  state.lastSession = id;\n',
  },
  {
    name: 'a session that ends gives back its newest lock alone',
    rule: 'C10',
    file: 'src/core/sessions.ts',
    from: '  joinToEnd(state, session);\n',
    to: '  if (session.holds.size + session.waits.size < 2) joinToEnd(state, session);\n',
    change: (plan) => ({
      ...crowded(plan),
      names: 3,
      habits: { ...plan.habits, holdMs: 20_000, waitMs: [20_000] },
    }),
  },
  {
    name: 'a new leader does not raise the token counter',
    rule: 'C12',
    file: 'src/core/admin.ts',
    from: 'if (command.unixSeconds <= UNIX_SECONDS_MAX) {',
    to: 'if (command.unixSeconds < 0) {',
    faults: ['serverCrash'],
  },
  {
    name: 'the token counter is lost with the snapshot',
    rule: 'C12',
    file: 'src/core/admin.ts',
    from: "  assert(state.lastToken >= before, 'the token counter goes back');\n",
    to: '  if (before > state.lastToken - 2 ** 21) state.lastToken = before - 1;\n',
    faults: ['serverCrash', 'logDepose'],
  },
  {
    name: 'what is broken --now counts as safe',
    rule: 'C9',
    file: 'src/core/admin.ts',
    from: "cause: 'break', unsafe: true });",
    to: "cause: 'break', unsafe: false });",
    faults: ['breakNow'],
    change: crowded,
  },
  {
    name: 'break --now waits for the lock-delay',
    rule: 'C8',
    file: 'src/core/admin.ts',
    from: "endHold(state, hold, 'REVOKED', true, events);",
    to: "endHold(state, hold, 'REVOKED', false, events);",
    faults: ['breakNow'],
    change: (plan) => {
      const busy = crowded(plan);
      return { ...busy, config: { ...busy.config, lockDelayMs: 1_000 } };
    },
  },
  {
    name: 'the end of a revoke is forgotten',
    rule: 'C9',
    file: 'src/core/holds.ts',
    from: 'const until = state.at + session.ttlMs;',
    to: 'const until = Math.max(state.at + session.ttlMs, hold.due);',
    faults: ['breakLock'],
    change: (plan) => ({
      ...crowded(plan),
      habits: { ...plan.habits, thinkMs: 1_000, holdMs: 60_000, waitMs: [20_000] },
    }),
  },
  {
    name: 'a report of a stale token is not recorded',
    rule: 'promise 6',
    file: 'src/core/admin.ts',
    from: "events.push({ type: 'fencingRejected', name, session, token, resource });",
    to: "if (acting !== null) events.push({ type: 'fencingRejected', name, session, token, resource });",
    faults: ['reportStale'],
    change: crowded,
  },
  {
    name: 'a command that threw is tried again',
    rule: 'C13',
    file: 'src/server/leader/faults.ts',
    from: "if (command.type !== 'unquarantine') this.#remember(command);",
    to: "if (command.type === 'unquarantine') this.#remember(command);",
    faults: ['linkCut', 'linkCutSilently', 'linkStall'],
    change: (plan) => ({ ...crowded(plan), poisonous: 0.1 }),
  },
  {
    name: 'a deposed leader goes on with the state of its successor after a throw',
    rule: 'C13',
    file: 'src/server/leader/entry-loop.ts',
    from: 'if (head.hash !== this.#appender.head.hash) {',
    to: "if (head.hash === '') {",
    change: (plan) => ({
      ...crowded(plan),
      ...{ isOneProcess: false, replicas: 3, leaseMs: 2_000, logLatencyMs: { from: 100, to: 800 } },
      poisonous: 0.2,
      faults: new Map([
        ['logDepose', 4_000],
        ['serverPause', 8_000],
      ]),
    }),
  },
  {
    name: 'a command that waits twice throws twice',
    rule: 'C13',
    file: 'src/server/leader/rebuild.ts',
    from: 'const repeats = [...takeOut(batch, isKnown), ...inbox.takeOut(isKnown)];',
    to: 'const repeats: ReturnType<typeof takeOut> = [];',
    change: (plan) => ({
      ...crowded(plan),
      isOneProcess: false,
      logLatencyMs: { from: 800, to: 4_000 },
      poisonous: 0.3,
      config: { ...plan.config, ttlMs: 5_000 },
    }),
  },
  {
    name: 'whose command threw keeps the session',
    rule: 'C13',
    file: 'src/server/leader/faults.ts',
    from: 'command.session > 0 ? command.session : null',
    to: 'command.session < 0 ? command.session : null',
    change: (plan) => ({ ...crowded(plan), poisonous: 0.05 }),
  },
  {
    name: 'the locks of a session whose command threw are free at once',
    rule: 'C13',
    file: 'src/server/leader/leases.ts',
    from: '    lease.isCondemned = true;\n',
    to: '    lease.isCondemned = true;\n    lease.expiresAtMs = Number.NEGATIVE_INFINITY;\n',
    faults: ['linkStall'],
    change: (plan) => {
      const busy = crowded(plan);
      return { ...busy, poisonous: 0.05, config: { ...busy.config, lockDelayMs: 0 } };
    },
  },
  {
    name: 'a leader that cannot read the log at once gives up after a throw',
    rule: 'C13',
    file: 'src/server/leader/rebuild.ts',
    from: 'if (!(error instanceof LogUnavailableError) || isOver()) throw error;',
    to: 'throw error;',
    faults: ['logOutage'],
    change: (plan) => ({ ...crowded(plan), poisonous: 0.1 }),
  },
  {
    name: 'the state is not made again after a throw',
    rule: 'C13',
    file: 'src/server/leader/entry-loop.ts',
    from: '    this.#state = state;\n    leaveOut',
    to: '    if (state.index < 0) this.#state = state;\n    leaveOut',
    change: (plan) => ({ ...crowded(plan), poisonous: 0.05 }),
  },
  {
    name: 'a command that threw is committed all the same',
    rule: 'C13',
    file: 'src/server/leader/entry-loop.ts',
    from: '      applied = apply(this.#state, draft, this.#options.probe);',
    to: `      applied = apply(this.#state, draft, {
        beforeConsequence: (name) => this.#options.probe?.beforeConsequence?.(name),
      });`,
    change: (plan) => ({ ...crowded(plan), poisonous: 0.05 }),
  },
  {
    name: 'a name whose timers throw is not put out of service',
    rule: 'C13',
    file: 'src/server/leader/faults.ts',
    from: "    prepend(batch, { type: 'quarantine', name, reason: fault.message.slice(0, 200) });\n",
    to: '',
    faults: ['poisonName', 'appCrash'],
    change: crowded,
  },
  {
    name: 'a broken lock is free before its holder gave it up',
    rule: 'C9',
    file: 'src/core/holds.ts',
    from: 'const until = state.at + session.ttlMs;',
    to: "const until = state.at + (cause === 'break' ? 1 : session.ttlMs);",
    faults: ['breakLock'],
    change: (plan) => ({
      ...crowded(plan),
      habits: { ...plan.habits, thinkMs: 1_000, holdMs: 20_000, waitMs: [20_000] },
    }),
  },
];
