/**
 * `kill -9` of `leasehold dev` under load, again and again on the same data: every acknowledged grant is there after the
 * restart under the same token, tokens grow over all lives, no request grants twice, sessions of live applications go on.
 *
 * Two servers with their own folders are killed side by side, since a restart is mostly waiting for one core.
 * LEASEHOLD_SEED=N repeats what clients and killer choose; what the machine makes of it differs from run to run.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { eventually, LockApi } from '../support/dev/lock-api.ts';
import { Workspace } from '../support/dev/workspace.ts';
import { Random } from '../support/random.ts';
import { Caller, type Load, lookAt } from './kill-9/application.ts';
import { committedHistory, configOf, judge } from './kill-9/judge.ts';
import { Ledger } from './kill-9/ledger.ts';
import { Lives } from './kill-9/lives.ts';
import { Leaver, lockOneByOne, StreamWorker, Worker } from './kill-9/workers.ts';

const KILLS = 25;
const TTL_MS = 8_000;
const MARGIN_MS = TTL_MS / 5;
/** Beyond the TTL: a lock-delay, and what a busy machine may add. */
const GONE_WITHIN_MS = 4_000;
const TIMEOUT_MS = 300_000;
const SEEDS = 2 ** 32;

const seed = Number(process.env.LEASEHOLD_SEED ?? Math.floor(Math.random() * SEEDS));

/** One server with a lock-delay, one without. */
const LOCK_DELAYS = { first: '0s', second: '1s' } as const;
const SHORT = { waitsMs: [0, 200, 2_000, 60_000], holdMsMax: 150, keepsShare: 0.05 };
/** Holds only over kills, so that there is always much to be found again. */
const KEEPING = { waitsMs: [0], holdMsMax: 0, keepsShare: 1 };

interface Clients {
  readonly load: Load;
  readonly running: Promise<void>;
  readonly settled: () => Promise<unknown>;
}

function startClients(load: Load, random: Random): Clients {
  const caller = (name: string) => new Caller(name, load, new Random(random.int(SEEDS)));
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}/${i}`);
  const contested = { ...SHORT, names: names('contested', 4) };
  const hot = { ...SHORT, names: ['hot'], waitsMs: [60_000], holdMsMax: 60 };
  const workers = [
    ...[1, 2, 3].map((i) => new Worker(caller(`worker-${i}`), contested)),
    ...[1, 2, 3].map((i) => new Worker(caller(`waiter-${i}`), hot)),
    ...[1, 2, 3, 4].map(
      (i) => new Worker(caller(`keeper-${i}`), { ...KEEPING, names: names(`kept-${i}`, 3) }),
    ),
    new StreamWorker(caller('streamer-1'), contested, 'stream'),
    new StreamWorker(caller('streamer-2'), { ...KEEPING, names: names('streamed', 3) }, 'stream'),
    new StreamWorker(caller('streamer-3'), { ...KEEPING, names: names('both', 3) }, 'both'),
  ];
  const running = Promise.all([
    ...workers.map((worker) => worker.run()),
    new Leaver(caller('leaver'), ['left/0', 'left/1']).run(),
    lockOneByOne(caller('single-1'), names('single-1', 6)),
    lockOneByOne(caller('single-2'), names('single-2', 6)),
  ]).then(() => undefined);
  return { load, running, settled: () => Promise.all(workers.map((worker) => worker.settled())) };
}

/** Right after a restart: whoever holds is found, by name and by token, and may go on. */
async function findAgain({ load, settled }: Clients, random: Random): Promise<number> {
  const checker = new Caller('checker', load, random);
  const grants = load.ledger.held();
  await Promise.all(
    grants.map(async (grant) => {
      const token = await checker.read(grant.name);
      if (grant.state === 'held' && token !== grant.token) load.ledger.lost(grant, `GET names ${token}`);
    }),
  );
  await settled();
  await Promise.all(
    grants.map(async (grant) => {
      // After a restart "held" is said only once the group has confirmed it, which a renew waits for.
      await lookAt(checker, grant);
      const isHeld = await checker.api.isHeld(grant);
      if (grant.state === 'held' && !isHeld) load.ledger.lost(grant, '/held says false');
    }),
  );
  checker.api.end();
  return grants.length;
}

async function killAgainAndAgain(alias: keyof typeof LOCK_DELAYS, random: Random) {
  const workspace = new Workspace();
  workspace.write({ name: alias, lease: { lockDelay: LOCK_DELAYS[alias] } });
  const lives = new Lives(workspace, new Random(random.int(SEEDS)));
  const ledger = new Ledger(lives, TTL_MS - MARGIN_MS);
  const ending = new AbortController();
  try {
    await lives.begin();
    const load = { lives, ledger, alias, ttlMs: TTL_MS, ending: ending.signal };
    const clients = startClients(load, random);
    let foundAgain = 0;
    while (lives.kills < KILLS) {
      await lives.endOne();
      foundAgain += await findAgain(clients, random);
    }
    await pause(300);
    ending.abort();
    await clients.running;
    const api = new LockApi(lives.port, alias);
    // What a one-lock session holds whose answer was lost is free one TTL later.
    await eventually(async () => (await api.namespaceMetric('sessions')) === 0, TTL_MS + GONE_WITHIN_MS);
    await eventually(async () => (await api.names()).length === 0, GONE_WITHIN_MS);
    api.end();
    await lives.end();
    const history = await committedHistory(workspace, alias);
    const judgement = judge(history, ledger.grants, await configOf(workspace));
    return { lives, ledger, foundAgain, ...judgement };
  } finally {
    ending.abort();
    await lives.abort();
    workspace.remove();
  }
}

test.concurrent.each(['first', 'second'] as const)(
  `kill -9 under load, again and again: the %s server (LEASEHOLD_SEED=${seed})`,
  { timeout: TIMEOUT_MS },
  async (alias) => {
    const result = await killAgainAndAgain(alias, new Random(alias === 'first' ? seed : seed + 1));
    const { lives, ledger, verdict } = result;
    const outagesMs = lives.outagesMs.map(Math.round).sort((a, b) => a - b);
    console.log(
      `${alias}: seed ${seed}, ${lives.kills} kills, ${ledger.grants.length} acknowledged grants, ` +
        `${result.foundAgain} found again after restarts, ${verdict.counts.events} events; ` +
        `outages ${outagesMs[0]} to ${outagesMs.at(-1)} ms`,
    );
    expect(ledger.violations).toEqual([]);
    expect(result.unknown).toEqual([]);
    expect(verdict.violations.map(({ property, message }) => `${property}: ${message}`)).toEqual([]);
    expect(verdict.counts.unjudgedRecords).toBe(0);
    expect(lives.complaints).toBe('');
    expect(result.takeOvers).toBeGreaterThan(KILLS / 2);
    expect(result.foundAgain).toBeGreaterThan(3 * KILLS);
    expect(ledger.grants.filter(({ state }) => state === 'held')).toEqual([]);
  },
);
