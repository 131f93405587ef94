/**
 * Which namespaces a process serves, and how its services answer calls about them.
 */
import type { handleUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import { LeaseholdError } from '../../api/errors.ts';
import type { AnswerBody } from '../../api/wire.ts';
import type { Replica } from '../replica.ts';
import { checkIntegers, type Message } from './proto.ts';
import { toServiceError } from './status.ts';

export interface Served {
  readonly alias: string;
  readonly replica: Replica;
}

/** The namespaces served now: reloaded manifests add and remove some. */
export type ServedNow = () => readonly Served[];

/** The one under `alias`, or the only one when `alias` is empty. Throws NAMESPACE_NOT_FOUND with the list of them. */
export function findServed(served: readonly Served[], alias: string): Served {
  const found =
    alias === '' && served.length === 1 ? served[0] : served.find((candidate) => candidate.alias === alias);
  if (found !== undefined) return found;
  const list = served.map((candidate) => candidate.alias).sort();
  const here = list.length === 0 ? 'none is served here' : `served here: ${list.join(', ')}`;
  const what = alias === '' ? 'name a namespace' : `no namespace ${alias}`;
  throw new LeaseholdError('NAMESPACE_NOT_FOUND', `${what}; ${here}`);
}

/** A unary method: its errors become gRPC statuses, numbers over 2^53 are refused. */
export function unary<Request>(
  work: (request: Request) => Message | Promise<Message>,
): handleUnaryCall<Request, Message> {
  const answer = async (request: Request, callback: sendUnaryData<Message>): Promise<void> => {
    let response: Message;
    try {
      checkIntegers(request);
      response = await work(request);
    } catch (error) {
      callback(toServiceError(error));
      return;
    }
    callback(null, response);
  };
  return (call, callback) => void answer(call.request, callback);
}

/** What a replica answered; throws what it refused. `asking` rejects only when the replica cannot answer any more. */
export async function answerOf(asking: Promise<AnswerBody>): Promise<AnswerBody> {
  const body = await asking.catch((error: unknown) => {
    throw new LeaseholdError('UNAVAILABLE', error instanceof Error ? error.message : String(error));
  });
  if (body.type !== 'refused' && body.type !== 'rejected') return body;
  throw new LeaseholdError(body.code === 'SUPERSEDED' ? 'UNAVAILABLE' : body.code, body.message);
}
