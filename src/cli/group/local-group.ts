/**
 * A lock group on this machine: starts its processes, knows them again by id and start time, and ends exactly those. Everything lies in one
 * folder, so that another command can find the group later.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../platform/folders.ts';
import { pause } from '../../platform/pause.ts';
import { startOf } from '../../platform/process.ts';
import { systemClock, systemTimers } from '../../platform/system-runtime.ts';
import { UnavailableError } from '../errors.ts';
import {
  GROUP_STATE_FILE,
  type GroupPlan,
  type GroupState,
  MEMBERS,
  type PlannedProcess,
  type PlanOptions,
  PORTS_NEEDED,
  planGroup,
  type Started,
} from './plan.ts';
import { securityFiles } from './security.ts';
import { readGroupState } from './state.ts';

/** A process that got SIGKILL is gone by then. */
const KILLED_MS_MAX = 5_000;
/** A process serves within this time of its start. */
const SERVE_MS_MAX = 60_000;
const POLL_MS = 50;
const PORT_MIN = 15_000;
const PORT_MAX = 32_000;
const PORT_TRIES_MAX = 1_000;
const PROBE_MS_MAX = 1_000;
/** Characters of the last line of its log. */
const LAST_WORDS_MAX = 300;
/**
 * SIGTERM first; whoever is still there after this time gets SIGKILL. etcd would try for seconds to hand over to members that end as well;
 * what it has acknowledged is on its disk.
 */
const END_MS_MAX: Readonly<Record<PlannedProcess['kind'], number>> = {
  sidecar: 8_000,
  server: 8_000,
  issuer: 2_000,
  etcd: 500,
};

export class LocalGroup {
  readonly plan: GroupPlan;
  readonly #path: string;
  readonly #started: Map<string, Started>;

  private constructor(path: string, { plan, started }: GroupState) {
    this.#path = path;
    this.plan = plan;
    this.#started = new Map(Object.entries(started));
  }

  /** The group in this folder; null: there is none. */
  static find(folder: string): LocalGroup | null {
    const state = readGroupState(folder);
    return state === null ? null : new LocalGroup(join(folder, GROUP_STATE_FILE), state);
  }

  /** Writes what a group needs, on free ports; starts nothing. */
  static async make(options: PlanOptions): Promise<LocalGroup> {
    const { folder, security } = options;
    const { plan, files } = planGroup(options, await freePorts(PORTS_NEEDED));
    const secrets = security === undefined ? [] : await securityFiles(folder, MEMBERS, security);
    for (const { path, text } of [...files, ...secrets]) {
      makeFolder(dirname(path));
      writeFileSync(path, text, { mode: 0o600 });
    }
    const group = new LocalGroup(join(options.folder, GROUP_STATE_FILE), { format: 1, plan, started: {} });
    group.#save();
    return group;
  }

  /** Id of a running process; null: it does not run. */
  pidOf(name: string): number | null {
    const started = this.#started.get(name);
    return started !== undefined && startOf(started.pid) === started.startedAt ? started.pid : null;
  }

  /** Starts what does not run, all at once, and waits until it serves. Returns their names. */
  async start(names: readonly string[] = this.plan.processes.map(({ name }) => name)): Promise<string[]> {
    const missing = this.plan.processes.filter(
      ({ name }) => names.includes(name) && this.pidOf(name) === null,
    );
    for (const process of missing) this.#spawn(process);
    await Promise.all(missing.map((process) => this.#serves(process)));
    return missing.map(({ name }) => name);
  }

  /** False: it does not run. */
  signal(name: string, signal: NodeJS.Signals): boolean {
    const pid = this.pidOf(name);
    if (pid === null) return false;
    process.kill(pid, signal);
    return true;
  }

  /** Resolves when it has ended. */
  async ended(name: string, limitMs: number): Promise<void> {
    await until(() => this.pidOf(name) === null, limitMs, `${name} has not ended`);
  }

  /** Ends all of its processes: sidecar, servers, etcd. Returns the names of those that ran. */
  async stop(): Promise<string[]> {
    const ran: string[] = [];
    for (const kind of ['sidecar', 'server', 'issuer', 'etcd'] as const) {
      const names = this.plan.processes.filter((planned) => planned.kind === kind).map(({ name }) => name);
      // One that stands still would not hear it.
      for (const name of names) this.signal(name, 'SIGCONT');
      ran.push(...names.filter((name) => this.signal(name, 'SIGTERM')));
      await Promise.all(
        names.map((name) =>
          this.ended(name, END_MS_MAX[kind]).catch(async () => {
            this.signal(name, 'SIGKILL');
            await this.ended(name, KILLED_MS_MAX);
          }),
        ),
      );
    }
    this.#started.clear();
    this.#save();
    return ran;
  }

  /** What a process says of itself; null: it does not answer. */
  async probe(name: string): Promise<unknown> {
    const planned = this.plan.processes.find((candidate) => candidate.name === name);
    if (planned === undefined) throw new RangeError(`the group has no process ${name}`);
    return probe(planned.healthUrl);
  }

  #spawn({ name, program, args, log }: PlannedProcess): void {
    const output = openSync(log, 'a', 0o600);
    try {
      const child = spawn(program, args, { detached: true, stdio: ['ignore', output, output] });
      // Reported as not serving.
      child.on('error', () => undefined);
      child.unref();
      const startedAt = child.pid === undefined ? null : startOf(child.pid);
      if (child.pid === undefined || startedAt === null) {
        throw new UnavailableError(`${name} cannot be started: ${program}`);
      }
      this.#started.set(name, { pid: child.pid, startedAt });
      this.#save();
    } finally {
      closeSync(output);
    }
  }

  async #serves({ name, healthUrl, log }: PlannedProcess): Promise<void> {
    const isDone = async (): Promise<boolean> => {
      if (this.pidOf(name) === null)
        throw new UnavailableError(`${name} has ended: ${lastWords(log)}; see ${log}`);
      return (await probe(healthUrl)) !== null;
    };
    await until(isDone, SERVE_MS_MAX, `${name} does not serve; see ${log}`);
  }

  #save(): void {
    const started = Object.fromEntries(this.#started);
    const state: GroupState = { format: 1, plan: this.plan, started };
    // Synced: after a power cut an empty file in its place would hide a group whose data is all there.
    writeFileSync(`${this.#path}.new`, JSON.stringify(state, null, 2), { mode: 0o600, flush: true });
    renameSync(`${this.#path}.new`, this.#path);
  }
}

/** What a process that has ended wrote last says why, as a rule: that its port is taken by now, say. */
function lastWords(log: string): string {
  const line = readFileSync(log, 'utf8').trimEnd().split('\n').at(-1) ?? '';
  return line === '' ? 'it wrote nothing' : line.slice(0, LAST_WORDS_MAX);
}

async function probe(url: string): Promise<unknown> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

async function until(isSo: () => boolean | Promise<boolean>, limitMs: number, what: string): Promise<void> {
  const start = systemClock.monotonicMs();
  while (!(await isSo())) {
    if (systemClock.monotonicMs() - start > limitMs) throw new UnavailableError(what);
    await pause(systemTimers, POLL_MS);
  }
}

/**
 * Below those that operating systems give to outgoing connections: one of those would be taken by somebody's connection while the process
 * that listens on it is restarted. All held at once, so that they differ.
 */
async function freePorts(count: number): Promise<readonly number[]> {
  const held: Server[] = [];
  const ports: number[] = [];
  for (let tries = 0; ports.length < count; tries++) {
    if (tries > PORT_TRIES_MAX) throw new UnavailableError(`no ${count} free ports on this machine`);
    const port = randomInt(PORT_MIN, PORT_MAX + 1);
    const server = await heldPort(port);
    if (server === null) continue;
    held.push(server);
    ports.push(port);
  }
  for (const server of held) {
    server.close();
    await once(server, 'close');
  }
  return ports;
}

/** Null: it is in use. */
function heldPort(port: number): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(null));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
