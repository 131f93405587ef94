/** The service `Admin` without a server: what its methods answer about a group that is not as they need it. */
import type { ServerUnaryCall, ServiceError } from '@grpc/grpc-js';
import { status } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { adminService } from './admin.ts';
import type { Served } from './served.ts';

/** A lock server whose configuration names nobody but itself. */
const LONE = {
  alias: 'payouts',
  replica: {
    status: () => ({
      serverId: 'a',
      role: 'leading',
      position: { lineage: 'one', epoch: 1, index: 9 },
      logIndex: 9,
      connected: true,
      clients: 0,
      problem: '',
    }),
    handOver: () => Promise.reject(new Error('nothing is handed over')),
  },
} as unknown as Served;

function refusalOf(request: object): Promise<ServiceError | null> {
  const { HandOver } = adminService(() => [LONE]);
  if (typeof HandOver !== 'function') throw new Error('the service has no HandOver');
  const call = { request } as ServerUnaryCall<object, object>;
  return new Promise((resolve) => {
    (HandOver as (call: object, callback: (error: ServiceError | null) => void) => void)(call, resolve);
  });
}

test.each(['', 'b', 'a'])('a group of one has nobody to hand over to, and says so (to: "%s")', async (to) => {
  expect(await refusalOf({ namespace: 'payouts', to })).toMatchObject({
    code: status.FAILED_PRECONDITION,
    details: 'payouts has one replica: there is nobody to hand over to',
  });
});
