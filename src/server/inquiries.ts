/**
 * Calls that come from inside the process (administration, configuration) and wait for their commit as any client's do.
 */
import type { Command } from '../api/entry.ts';
import type { AnswerBody, LeaderFrame, ReadQuery } from '../api/wire.ts';
import { Outgoing } from './outbox.ts';

export class Inquiries {
  /** Of those that have no answer yet. */
  readonly #rejects = new Set<(error: Error) => void>();

  /**
   * `push` puts one request into the leader's inbox; false: it is full. Resolves with the answers, in the order of `bodies`.
   */
  ask(
    bodies: readonly (Command | ReadQuery)[],
    push: (body: Command | ReadQuery, from: Outgoing, id: number) => boolean,
  ): Promise<readonly AnswerBody[]> {
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
      for (const [id, body] of bodies.entries()) {
        if (push(body, from, id)) continue;
        this.#rejects.delete(reject);
        reject(new Error('too many requests wait for the log'));
        return;
      }
    });
  }

  /** Nobody will answer any more. */
  fail(error: Error): void {
    for (const reject of this.#rejects) reject(error);
    this.#rejects.clear();
  }
}
