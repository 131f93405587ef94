/** Bugs in the state machine, one for each rule C that bugs.ts and lock-bugs.ts leave out: see bugs.ts. */
import type { Plan } from '../plan.ts';
import type { PlantedBug } from './bug.ts';
import { asking } from './lock-bugs.ts';

/** Short waits and holds at one name, so that waits run out and queues move. */
function crowded(plan: Plan): Plan {
  const config = { ...plan.config, heldLocks: 1_000, locksPerClient: 100, sessions: 5_000, waiters: 50_000 };
  const habits = { ...plan.habits, thinkMs: 1_000, holdMs: 400, waitMs: [100, 5_000], neverReleases: 0 };
  return { ...plan, names: 1, config, habits };
}

export const CORE_BUGS: readonly PlantedBug[] = [
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
