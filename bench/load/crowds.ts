/** Loads that are large rather than fast: many sessions that are kept alive, and very many locks that are held. */
import { acquireBody, Client, type Connect, openBody } from '../client.ts';
import { type Summary, summarise } from '../measure.ts';

const TTL_MS = 15_000;
/** As clients do it (rule S8). */
const KEEPALIVE_MS = TTL_MS / 5;
/** Opened, or acquired, at once by one stream. */
const AT_ONCE = 100;

export interface KeptSessions extends Summary {
  /** Sessions that an answer said are over. */
  readonly lost: number;
  /** Share of keepalives that were answered before the next one was due. */
  readonly inTime: number;
}

/** Sessions spread over these streams; each stream keeps its own alive with one frame every fifth of the TTL. */
export async function keepSessions(
  streams: readonly Connect[],
  { sessions, seconds }: { readonly sessions: number; readonly seconds: number },
): Promise<KeptSessions> {
  const perStream = Math.ceil(sessions / streams.length);
  const clients = await Promise.all(streams.map((connect) => Client.open(connect)));
  const held = await Promise.all(clients.map((client) => openMany(client, perStream - 1)));
  const latenciesMs: number[] = [];
  let lost = 0;
  const rounds = Math.max(2, Math.ceil((seconds * 1000) / KEEPALIVE_MS));
  const keep = async (client: Client, at: number): Promise<void> => {
    // Spread over the interval, as independent clients are.
    await pause((KEEPALIVE_MS * at) / clients.length);
    for (let round = 0; round < rounds; round++) {
      const sentMs = performance.now();
      const { sessions: statuses } = await client.keepalive([client.session, ...(held[at] ?? [])]);
      latenciesMs.push(performance.now() - sentMs);
      lost += statuses.filter(({ alive }) => !alive).length;
      await pause(KEEPALIVE_MS - (performance.now() - sentMs));
    }
  };
  const startedMs = performance.now();
  await Promise.all(clients.map(keep));
  const summary = summarise(latenciesMs, (performance.now() - startedMs) / 1000);
  for (const client of clients) client.hangUp();
  const inTime = latenciesMs.filter((ms) => ms < KEEPALIVE_MS).length / latenciesMs.length;
  return { ...summary, lost, inTime };
}

async function openMany(client: Client, count: number): Promise<readonly number[]> {
  const opened: number[] = [];
  while (opened.length < count) {
    const asking = Array.from({ length: Math.min(AT_ONCE, count - opened.length) }, () =>
      client.ask({ ...openBody(), ttlMs: TTL_MS }),
    );
    for (const answer of await Promise.all(asking)) {
      if (answer.type !== 'opened') throw new Error(JSON.stringify(answer));
      opened.push(answer.session);
    }
  }
  return opened;
}

/** Takes so many locks and holds them: the clients stay, and keep their sessions alive, as long as this process lives. */
export async function holdLocks(
  streams: readonly Connect[],
  { locks }: { readonly locks: number },
): Promise<Summary> {
  const perStream = Math.ceil(locks / streams.length);
  const startedMs = performance.now();
  const clients = await Promise.all(streams.map((connect) => Client.open(connect)));
  setInterval(() => {
    for (const client of clients) if (!client.isClosed) void client.keepalive();
  }, KEEPALIVE_MS);
  await Promise.all(clients.map((client) => takeMany(client, perStream)));
  return summarise(
    new Array<number>(perStream * clients.length).fill(0),
    (performance.now() - startedMs) / 1000,
  );
}

async function takeMany(client: Client, count: number): Promise<void> {
  let acks: readonly string[] = [];
  for (let taken = 0; taken < count; taken += AT_ONCE) {
    const keys = Array.from({ length: Math.min(AT_ONCE, count - taken) }, (_, at) => `h${taken + at}`);
    const bodies = keys.map((key, at) =>
      acquireBody(client.session, key, `held-${client.session}-${key}`, 0, at === 0 ? acks : []),
    );
    for (const answer of await Promise.all(bodies.map((body) => client.ask(body)))) {
      if (answer.type !== 'granted') throw new Error(JSON.stringify(answer));
    }
    acks = keys;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
