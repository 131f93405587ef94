/**
 * Rewrites what a group on this machine has been planned with, so that every connection between its processes goes through faulty proxies,
 * and so that it has sidecars of its own number. The plan is the product's; only addresses change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { LocalGroup } from '../../../src/cli/group/local-group.ts';
import type { GroupPlan, PlannedProcess } from '../../../src/cli/group/plan.ts';
import { freePorts } from '../free-ports.ts';
import type { ProxyNet } from './proxy-net.ts';

const STATE_FILE = 'group.json';

interface ServerFile {
  readonly etcd: { endpoints: string[] };
  readonly peers: Record<string, string>;
  readonly serverId: string;
}

/** Changes the plan on disk, and returns the group that follows it. */
export function replan(folder: string, change: (process: PlannedProcess) => PlannedProcess[]): LocalGroup {
  const path = join(folder, STATE_FILE);
  const state = JSON.parse(readFileSync(path, 'utf8')) as { plan: GroupPlan };
  const processes = state.plan.processes.flatMap(change);
  writeFileSync(path, JSON.stringify({ ...state, plan: { ...state.plan, processes } }));
  const group = LocalGroup.find(folder);
  if (group === null) throw new Error(`${path} is gone`);
  return group;
}

/** Name of the etcd member, by any of its URLs in the plan. */
function etcdAt({ processes }: GroupPlan, url: string): string {
  const member = processes.find(
    ({ kind, args }) => kind === 'etcd' && args.some((arg) => arg.endsWith(`=${url}`)),
  );
  if (member === undefined) throw new Error(`no etcd member is at ${url}`);
  return member.name;
}

/** Servers to etcd, servers to each other, etcd members to each other. */
export async function throughProxies(
  folder: string,
  { plan }: LocalGroup,
  net: ProxyNet,
): Promise<LocalGroup> {
  const names = (kind: string) => plan.processes.filter((p) => p.kind === kind).map(({ name }) => name);
  for (const server of names('server')) await rewireServer(join(folder, `${server}.yaml`), server, plan, net);
  const peers = new Map<string, string>();
  for (const { name, args } of plan.processes.filter(({ kind }) => kind === 'etcd')) {
    const url = flag(args, 'listen-peer-urls');
    const others = names('etcd').filter((other) => other !== name);
    peers.set(url, `http://${await net.linkAll(others, name, url)}`);
  }
  return replan(folder, (process) => [process.kind === 'etcd' ? behind(process, peers) : process]);
}

function behind(process: PlannedProcess, peers: ReadonlyMap<string, string>): PlannedProcess {
  const args = process.args.map((arg) => {
    if (arg.startsWith('--listen-')) return arg;
    return [...peers].reduce((text, [url, proxied]) => text.replaceAll(url, proxied), arg);
  });
  return { ...process, args };
}

async function rewireServer(path: string, server: string, plan: GroupPlan, net: ProxyNet): Promise<void> {
  const file = parse(readFileSync(path, 'utf8')) as ServerFile;
  const endpoints: string[] = [];
  for (const url of file.etcd.endpoints)
    endpoints.push(`http://${await net.link(server, etcdAt(plan, url), url)}`);
  file.etcd.endpoints = endpoints;
  for (const [id, address] of Object.entries(file.peers)) {
    if (id !== file.serverId) file.peers[id] = await net.link(server, `server-${id}`, address);
  }
  writeFileSync(path, stringify(file));
}

/** In place of the one sidecar of the plan: so many, each with its own way to each front end. */
export async function withSidecars(
  folder: string,
  { plan }: LocalGroup,
  count: number,
  net: ProxyNet | null,
): Promise<LocalGroup> {
  const names = Array.from({ length: count }, (_, at) => `sidecar-${at + 1}`);
  const servers = plan.processes.filter(({ kind }) => kind === 'server').map(({ name }) => name);
  const ports = await freePorts(count);
  for (const [at, name] of names.entries()) {
    const endpoints: string[] = [];
    for (const [place, address] of plan.endpoints.entries()) {
      endpoints.push(net === null ? address : await net.link(name, servers[place] as string, address));
    }
    const file = { port: ports[at], data: name, namespaces: [{ alias: plan.alias, endpoints }] };
    writeFileSync(join(folder, `${name}.yaml`), stringify(file));
  }
  return replan(folder, (process) => {
    if (process.kind !== 'sidecar') return [process];
    return names.map((name, at) => ({
      ...process,
      name,
      args: process.args.map((arg) => arg.replace('sidecar.yaml', `${name}.yaml`)),
      log: join(folder, `${name}.log`),
      healthUrl: `http://127.0.0.1:${ports[at]}/readyz`,
    }));
  });
}

export function flag(args: readonly string[], name: string): string {
  const arg = args.find((candidate) => candidate.startsWith(`--${name}=`));
  if (arg === undefined) throw new Error(`--${name} is missing`);
  return arg.slice(name.length + 3);
}
