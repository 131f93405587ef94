/**
 * Calls that come from inside the process (administration, configuration, reads of tools) and wait for their commit as any
 * client's do.
 */
import type { Command, CommandResult } from '../../api/entry.ts';
import type { AnswerBody, LeaderFrame, ReadQuery, ReadResult } from '../../api/wire.ts';
import { encodingProblem } from './encodable.ts';
import { type Faults, MADE_IT_FAIL } from './faults.ts';
import type { Inbox } from './inbox.ts';
import { Outgoing } from './outbox.ts';

export interface InquiryParts {
  readonly inbox: Inbox;
  readonly faults: Faults;
  /** Something waits in the inbox. */
  readonly onAsked: () => void;
}

export class Inquiries {
  readonly #parts: InquiryParts;
  /** Of those that have no answer yet. */
  readonly #rejects = new Set<(error: Error) => void>();
  #isClosed = false;

  constructor(parts: InquiryParts) {
    this.#parts = parts;
  }

  /** Resolves after the commit, with an answer to each. One that cannot be written, or has thrown before, keeps all of them out of the log. */
  async submit(commands: readonly Command[]): Promise<readonly CommandResult[]> {
    const problem = encodingProblem(commands);
    if (problem !== null) return refuseAll(commands, `this command is malformed: ${problem}`);
    // Each rebuild takes as long as the log: scripts that try again must not keep the leader at it (rule C13).
    if (commands.some((command) => this.#parts.faults.isKnown(command)))
      return refuseAll(commands, MADE_IT_FAIL.message);
    const results = (await this.#ask(commands)) as readonly CommandResult[];
    for (const [i, command] of commands.entries()) {
      const isDone = results[i]?.type === 'done';
      if (command.type === 'unquarantine' && isDone) this.#parts.faults.forgive(command.name);
    }
    return results;
  }

  /** A command of the leader's own, which nothing may keep from being done. */
  async submitOwn(command: Command): Promise<void> {
    const [result] = await this.submit([command]);
    if (result?.type !== 'done') throw new Error(`${command.type} was refused: ${JSON.stringify(result)}`);
  }

  /** Answered after a commit that began after this call (rule S1). */
  async read(query: ReadQuery): Promise<ReadResult> {
    const [answer] = await this.#ask([query]);
    return answer as ReadResult;
  }

  /** Nobody will answer any more. */
  close(): void {
    this.#isClosed = true;
    for (const reject of this.#rejects) reject(new Error('this server has stopped leading'));
    this.#rejects.clear();
  }

  /** Resolves with the answers, in the order of `bodies`. */
  #ask(bodies: readonly (Command | ReadQuery)[]): Promise<readonly AnswerBody[]> {
    if (this.#isClosed) return Promise.reject(new Error('this server does not lead'));
    return new Promise((resolve, reject) => {
      const answers: AnswerBody[] = [];
      let missing = bodies.length;
      this.#rejects.add(reject);
      const send = ({ groups }: LeaderFrame): void => {
        for (const { id, body } of groups.flatMap((group) => group.answers)) {
          answers[id] = body;
          missing--;
        }
        if (missing > 0) return;
        this.#rejects.delete(reject);
        resolve(answers);
      };
      const from = new Outgoing({ send }, 0);
      const isTaken = bodies.every((body, id) => this.#parts.inbox.push(body, from, id));
      this.#parts.onAsked();
      if (isTaken) return;
      this.#rejects.delete(reject);
      reject(new Error('too many requests wait for the log'));
    });
  }
}

function refuseAll(commands: readonly Command[], message: string): readonly CommandResult[] {
  return commands.map(() => ({ type: 'refused', code: 'INVALID', message }));
}
