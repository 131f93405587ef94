/**
 * The service `Inspect`: reading the state of the served namespaces.
 */
import type { UntypedServiceImplementation } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import { LIST_LIMIT_DEFAULT } from '../../api/limits.ts';
import type { ReadQuery } from '../../api/wire.ts';
import { assert } from '../../core/index.ts';
import { requestProblem } from '../validate.ts';
import { encodeConfig } from './config.ts';
import type { GetLockRequest, ListLocksRequest, NamespaceStatusMessage, OfNamespace } from './messages.ts';
import type { Message } from './proto.ts';
import { answerOf, findServed, type Served, type ServedNow, unary } from './served.ts';

export function inspectService(served: ServedNow): UntypedServiceImplementation {
  return {
    Status: unary(({ namespace }: OfNamespace) => {
      const all = served();
      const shown = namespace === '' ? [...all] : [findServed(all, namespace)];
      shown.sort((a, b) => (a.alias < b.alias ? -1 : 1));
      return { namespaces: shown.map(statusOf) };
    }),
    GetLock: unary(({ namespace, name }: GetLockRequest) =>
      read(findServed(served(), namespace), { type: 'getLock', name }),
    ),
    ListLocks: unary(({ namespace, prefix, after, limit }: ListLocksRequest) => {
      const query = {
        type: 'listLocks' as const,
        prefix,
        after,
        limit: limit === 0 ? LIST_LIMIT_DEFAULT : limit,
      };
      return read(findServed(served(), namespace), query);
    }),
  };
}

function statusOf({ alias, replica }: Served): NamespaceStatusMessage {
  const { config, ...status } = replica.status();
  const { longestQueue, logBytes, snapshotBytes } = replica.gauges();
  return {
    ...status,
    namespace: alias,
    config: config === null ? null : encodeConfig(config),
    longestQueue,
    logBytes,
    snapshotBytes,
  };
}

async function read({ replica }: Served, query: ReadQuery): Promise<Message> {
  const problem = requestProblem(query);
  if (problem !== null) throw new LeaseholdError('INVALID', problem.message);
  const answer = await answerOf(replica.read(query));
  assert(answer.type === 'lock' || answer.type === 'locks', 'a read is answered with something else');
  return answer as unknown as Message;
}
