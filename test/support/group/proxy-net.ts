/**
 * Every connection of a group of processes through faulty proxies, named by pairs: `fault('server-a', 'etcd-*', …)`. Each pair has a listener
 * of its own, except between etcd members: they know one address of each other, so who connects there is looked up by its port.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Socket } from 'node:net';
import { FaultyProxy, type LinkFault, NO_FAULT } from '../faulty-proxy.ts';

interface Link {
  /** Who may connect; several: each connection's source is looked up. */
  readonly from: readonly string[];
  readonly to: string;
  readonly proxy: FaultyProxy;
}

export interface ProxyNetOptions {
  /** Names and ids of the processes that run now. */
  readonly pids?: () => ReadonlyMap<string, number>;
}

export class ProxyNet {
  readonly #links: Link[] = [];
  readonly #pids: () => ReadonlyMap<string, number>;
  /** What `hindered` has told so far, by pair. */
  readonly #counted = new Map<string, number>();

  constructor({ pids = () => new Map() }: ProxyNetOptions = {}) {
    this.#pids = pids;
  }

  /** `host:port` of a new proxy for this pair. */
  async link(from: string, to: string, target: string): Promise<string> {
    const proxy = await FaultyProxy.start(target);
    this.#links.push({ from: [from], to, proxy });
    return `127.0.0.1:${proxy.port}`;
  }

  /** One listener for all of these: each connection belongs to the process that opened it. */
  async linkAll(from: readonly string[], to: string, target: string): Promise<string> {
    const source = (socket: Socket): string => ownerOf(socket.remotePort ?? 0, this.#pids()) ?? 'unknown';
    const proxy = await FaultyProxy.start(target, { source });
    this.#links.push({ from, to, proxy });
    return `127.0.0.1:${proxy.port}`;
  }

  /** Names may end in `*`. Throws when no link is meant: a fault that hits nothing proves nothing. */
  fault(from: string, to: string, fault: LinkFault): void {
    this.#each(from, to, ({ proxy }, source) => proxy.set(fault, source));
  }

  heal(from = '*', to = '*'): void {
    this.fault(from, to, NO_FAULT);
  }

  halfOpen(from: string, to: string): number {
    let hit = 0;
    this.#each(from, to, ({ proxy }, source) => {
      hit += proxy.halfOpen(source);
    });
    return hit;
  }

  cut(from: string, to: string): number {
    let hit = 0;
    this.#each(from, to, ({ proxy }, source) => {
      hit += proxy.cut(source);
    });
    return hit;
  }

  /** Bytes that faults have held, slowed or dropped since this was asked last for the pair. */
  hindered(from: string, to: string): number {
    let bytes = 0;
    this.#each(from, to, ({ proxy }, source) => {
      bytes += proxy.hinderedBytes(source);
    });
    const pair = `${from}>${to}`;
    const before = this.#counted.get(pair) ?? 0;
    this.#counted.set(pair, bytes);
    return bytes - before;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#links.map(({ proxy }) => proxy.stop()));
  }

  #each(from: string, to: string, act: (link: Link, source: string) => void): void {
    let count = 0;
    for (const link of this.#links) {
      if (!matches(link.to, to)) continue;
      const sources = link.from.filter((name) => matches(name, from));
      // One of one: its proxy asks nobody who it is.
      for (const source of sources) act(link, link.from.length === 1 ? '' : source);
      count += sources.length;
    }
    if (count === 0) throw new RangeError(`no link goes from ${from} to ${to}`);
  }
}

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** Name of the process that has a loopback connection from this port, as Linux shows it. */
function ownerOf(port: number, pids: ReadonlyMap<string, number>): string | null {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of readFileSync(table, 'utf8').split('\n')) {
      const fields = line.trim().split(/\s+/);
      if (!fields[1]?.endsWith(`:${hex}`) || fields[9] === undefined || fields[9] === '0') continue;
      const socket = `socket:[${fields[9]}]`;
      for (const [name, pid] of pids) if (hasDescriptor(pid, socket)) return name;
    }
  }
  return null;
}

function hasDescriptor(pid: number, target: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`) === target);
  } catch {
    return false;
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}
