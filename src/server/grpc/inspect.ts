/**
 * The service `Inspect`: reading the state of the served namespaces.
 */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import { LIST_LIMIT_DEFAULT } from '../../api/limits.ts';
import type { ReadQuery } from '../../api/wire.ts';
import { assert } from '../../core/index.ts';
import { requestProblem } from '../front-end/validate.ts';
import { encodeConfig } from './config.ts';
import { membersOf } from './members.ts';
import type {
  GetLockRequest,
  ListLocksRequest,
  MembersRequest,
  NamespaceStatusMessage,
  OfNamespace,
} from './messages.ts';
import type { Message } from './proto.ts';
import { answerOf, findServed, leaderOnly, noAuditOf, type Served, type ServedNow, unary } from './served.ts';

const INSPECT = 'leasehold.v1.Inspect';

export function inspectService(served: ServedNow): UntypedServiceImplementation {
  return {
    Status: unary(async ({ namespace }: OfNamespace) => {
      const all = served();
      const shown = namespace === '' ? [...all] : [findServed(all, namespace)];
      shown.sort((a, b) => (a.alias < b.alias ? -1 : 1));
      return { namespaces: await Promise.all(shown.map(statusOf)) };
    }),
    GetLock: leaderOnly({ service: INSPECT, name: 'GetLock' }, served, (replica, { name }: GetLockRequest) =>
      read(replica, { type: 'getLock', name }),
    ),
    ListLocks: leaderOnly({ service: INSPECT, name: 'ListLocks' }, served, (replica, request) => {
      const { prefix, after, limit }: ListLocksRequest = request;
      const query = {
        type: 'listLocks' as const,
        prefix,
        after,
        limit: limit === 0 ? LIST_LIMIT_DEFAULT : limit,
      };
      return read(replica, query);
    }),
    Members: unary(async (request: MembersRequest) => {
      return (await membersOf(findServed(served(), request.namespace), request)) as unknown as Message;
    }),
    Audit: leaderOnly({ service: INSPECT, name: 'Audit' }, served, audit),
  };
}

async function audit({ alias, replica }: Served): Promise<Message> {
  if (replica.audit === undefined) throw noAuditOf(alias);
  const { cursor, ...progress } = await replica.audit();
  return { ...progress, hasCursor: cursor !== null, cursor: cursor ?? 0 };
}

async function statusOf({ alias, replica }: Served): Promise<NamespaceStatusMessage> {
  const { config, logIndex, ...status } = await replica.status();
  const { longestQueue, logBytes, snapshotBytes } = replica.gauges() ?? NOTHING_YET;
  return {
    ...status,
    logIndex: logIndex ?? 0,
    namespace: alias,
    config: config === null ? null : encodeConfig(config),
    longestQueue,
    logBytes,
    snapshotBytes,
  };
}

const NOTHING_YET = { longestQueue: 0, logBytes: 0, snapshotBytes: 0 };

async function read({ replica }: Served, query: ReadQuery): Promise<Message> {
  const problem = requestProblem(query);
  if (problem !== null) throw new LeaseholdError('INVALID', problem.message);
  const answer = await answerOf(replica.read(query));
  assert(answer.type === 'lock' || answer.type === 'locks', 'a read is answered with something else');
  return answer as unknown as Message;
}
