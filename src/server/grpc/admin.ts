/**
 * The service `Admin`: commands that no application may give. Each goes through the log like any other command.
 */
import { status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { NamespaceConfig } from '../../api/config.ts';
import { configProblems } from '../../api/config-problems.ts';
import type { Command } from '../../api/entry.ts';
import { LeaseholdError } from '../../api/errors.ts';
import { OWNER_BYTES_MAX, REASON_BYTES_MAX } from '../../api/limits.ts';
import { nameProblem } from '../../api/names.ts';
import { textProblem } from '../../api/text.ts';
import { assert } from '../../core/index.ts';
import { decodeConfig } from './config.ts';
import { membersOf } from './members.ts';
import type {
  BreakRequest,
  ConfigureRequest,
  HandOverRequest,
  OfNamespace,
  QuarantineRequest,
  UnquarantineRequest,
} from './messages.ts';
import type { Message } from './proto.ts';
import { answerOf, leaderOnly, noAuditOf, type Served, type ServedNow } from './served.ts';
import { CallError } from './status.ts';

const ADMIN = 'leasehold.v1.Admin';

export function adminService(served: ServedNow): UntypedServiceImplementation {
  const command = <Request extends OfNamespace>(
    name: string,
    toCommand: (request: Request, served: Served) => Command,
  ) =>
    leaderOnly({ service: ADMIN, name }, served, (found, request: Request) =>
      submit(found, toCommand(request, found)),
    );
  return {
    Break: command('Break', breakCommand),
    Quarantine: command('Quarantine', ({ name, reason }: QuarantineRequest) => {
      checkName(name);
      checkText('reason', reason, REASON_BYTES_MAX);
      return { type: 'quarantine', name, reason };
    }),
    Unquarantine: command('Unquarantine', ({ name, by }: UnquarantineRequest) => {
      checkName(name);
      checkText('by', by, OWNER_BYTES_MAX);
      return { type: 'unquarantine', name, by };
    }),
    HandOver: leaderOnly({ service: ADMIN, name: 'HandOver' }, served, handOver),
    Snapshot: leaderOnly({ service: ADMIN, name: 'Snapshot' }, served, snapshot),
    Configure: leaderOnly({ service: ADMIN, name: 'Configure' }, served, configure),
    ForgetAudit: leaderOnly({ service: ADMIN, name: 'ForgetAudit' }, served, forgetAudit),
  };
}

async function forgetAudit({ alias, replica }: Served): Promise<Message> {
  if (replica.forgetAudit === undefined) throw noAuditOf(alias);
  const cursor = await replica.forgetAudit();
  return { hadCursor: cursor !== null, cursor: cursor ?? 0 };
}

function breakCommand({ name, token, now, reason, by }: BreakRequest): Command {
  checkName(name);
  if (token === 0)
    throw new LeaseholdError('INVALID', 'token is missing: say which grant, not just which name');
  checkText('reason', reason, REASON_BYTES_MAX);
  checkText('by', by, OWNER_BYTES_MAX);
  return { type: 'break', name, token, now, reason, by };
}

async function configure(served: Served, request: ConfigureRequest): Promise<Message> {
  const { alias, isConfigurable, replica } = served;
  if (isConfigurable !== true) {
    const message = `the configuration of ${alias} comes from its manifest: edit the file, and it is reloaded`;
    throw new CallError(status.FAILED_PRECONDITION, message);
  }
  const { version } = request;
  if (version === 0)
    throw new LeaseholdError('INVALID', 'version is missing: it counts from 1 and only grows');
  const config = request.config === null ? null : decodeConfig(request.config);
  if (config !== null) checkConfig(config, (await replica.status()).config);
  return submit(served, { type: 'configure', version, config });
}

/** `current`: in force; that of another LockNamespace is refused, because sessions and locks would change hands. */
function checkConfig(config: NamespaceConfig, current: NamespaceConfig | null): void {
  const problems = [...configProblems(config)];
  for (const field of ['namespace', 'name'] as const) {
    if (current === null || config[field] === current[field]) continue;
    const reason = `${field} is ${JSON.stringify(config[field])}; this group serves ${JSON.stringify(current[field])}`;
    problems.push({ field, limit: current[field], reason });
  }
  const [first] = problems;
  if (first === undefined) return;
  const { field, limit } = first;
  const message = `the configuration cannot be put into force: ${problems.map(({ reason }) => reason).join('; ')}`;
  throw new LeaseholdError('INVALID', message, { field, limit, problems });
}

/** To `to`, or to the replica that is least behind. Nothing is done unless it could lead at once. */
async function handOver(served: Served, { namespace, to }: HandOverRequest): Promise<Message> {
  const { replica } = served;
  if (replica.handOver === undefined) throw alone(served, 'hand over to');
  const { members } = await membersOf(served, { namespace, onlySelf: false });
  const own = (await replica.status()).serverId;
  const others = members.filter(({ serverId }) => serverId !== own);
  if (others.length === 0) throw alone(served, 'hand over to');
  const wanted = to === '' ? others : others.filter(({ serverId }) => serverId === to);
  if (wanted.length === 0) {
    const why = to === own ? `${to} leads already` : `${to} is no other replica of this group`;
    throw new LeaseholdError(
      'INVALID',
      `${why}; the others: ${others.map(({ serverId }) => serverId).join(', ')}`,
    );
  }
  const able = wanted.filter(({ role, problem }) => role === 'following' && problem === '');
  const [best] = able.sort((a, b) => a.lag - b.lag);
  if (best === undefined) {
    const why = wanted.map(
      ({ serverId, role, problem }) => `${serverId}: ${problem === '' ? role : problem}`,
    );
    throw new CallError(status.FAILED_PRECONDITION, `nobody could take over at once: ${why.join('; ')}`);
  }
  const { serverId, tookMs } = await replica.handOver(best.serverId);
  return { from: own, to: serverId, tookMs: Math.round(tookMs) };
}

async function snapshot(served: Served): Promise<Message> {
  const { replica } = served;
  if (replica.snapshot === undefined) throw alone(served, 'make a snapshot for');
  const { index, bytes, tookMs } = await replica.snapshot();
  return { index, bytes, tookMs: Math.round(tookMs) };
}

function alone({ alias }: Served, what: string): CallError {
  return new CallError(status.FAILED_PRECONDITION, `${alias} has one replica: there is nobody to ${what}`);
}

async function submit({ replica }: Served, command: Command): Promise<Message> {
  const answer = await answerOf(replica.submit(command));
  assert(answer.type === 'done', `a command of an administrator is answered ${answer.type}`);
  return {};
}

function checkName(name: string): void {
  const problem = nameProblem(name);
  if (problem !== null) throw new LeaseholdError('INVALID', problem);
}

function checkText(field: string, text: string, bytesMax: number): void {
  if (text === '') throw new LeaseholdError('INVALID', `${field} is missing: it goes on record`);
  const problem = textProblem(text, { min: 1, max: bytesMax });
  if (problem !== null) throw new LeaseholdError('INVALID', `${field} ${problem}`);
}
