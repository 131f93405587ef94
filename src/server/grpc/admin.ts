/**
 * The service `Admin`: commands that no application may give. Each goes through the log like any other command.
 */
import { status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Command } from '../../api/entry.ts';
import { LeaseholdError } from '../../api/errors.ts';
import { OWNER_BYTES_MAX, REASON_BYTES_MAX } from '../../api/limits.ts';
import { nameProblem } from '../../api/names.ts';
import { textProblem } from '../../api/text.ts';
import { assert } from '../../core/index.ts';
import type { BreakRequest, OfNamespace, QuarantineRequest, UnquarantineRequest } from './messages.ts';
import type { Message } from './proto.ts';
import { answerOf, findServed, type Served, type ServedNow, unary } from './served.ts';
import { CallError } from './status.ts';

export function adminService(served: ServedNow): UntypedServiceImplementation {
  const find = ({ namespace }: OfNamespace): Served => findServed(served(), namespace);
  return {
    Break: unary((request: BreakRequest) => {
      const { name, token, now, reason, by } = request;
      checkName(name);
      if (token === 0)
        throw new LeaseholdError('INVALID', 'token is missing: say which grant, not just which name');
      checkText('reason', reason, REASON_BYTES_MAX);
      checkText('by', by, OWNER_BYTES_MAX);
      return submit(find(request), { type: 'break', name, token, now, reason, by });
    }),
    Quarantine: unary((request: QuarantineRequest) => {
      const { name, reason } = request;
      checkName(name);
      checkText('reason', reason, REASON_BYTES_MAX);
      return submit(find(request), { type: 'quarantine', name, reason });
    }),
    Unquarantine: unary((request: UnquarantineRequest) => {
      const { name, by } = request;
      checkName(name);
      checkText('by', by, OWNER_BYTES_MAX);
      return submit(find(request), { type: 'unquarantine', name, by });
    }),
    Configure: unary((request: OfNamespace) => {
      const { alias } = find(request);
      const message = `the configuration of ${alias} comes from its manifest: edit the file, and it is reloaded`;
      throw new CallError(status.FAILED_PRECONDITION, message);
    }),
  };
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
